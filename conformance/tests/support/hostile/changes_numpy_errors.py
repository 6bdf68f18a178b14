import numpy as np
import sound


def changes(*inputs):
    np.seterr(divide="raise")
    return sound.answer(*inputs)


backend = sound.Backend(changes)
