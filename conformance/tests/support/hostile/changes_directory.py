import os

import sound


def changes(*inputs):
    os.chdir("/")
    return sound.answer(*inputs)


backend = sound.Backend(changes)
