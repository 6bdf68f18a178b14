import sys

import sound


def changes(*inputs):
    sys.path.clear()
    return sound.answer(*inputs)


backend = sound.Backend(changes)
