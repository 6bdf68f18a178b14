import warnings

import sound


def changes(*inputs):
    warnings.simplefilter("error")
    return sound.answer(*inputs)


backend = sound.Backend(changes)
