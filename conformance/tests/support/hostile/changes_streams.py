import sys

import sound


def changes(*inputs):
    sys.stdout = sys.stderr = None
    return sound.answer(*inputs)


backend = sound.Backend(changes)
