import numpy as np
import sound


def zeros(*inputs):
    return tuple(np.zeros_like(one) for one in sound.answer(*inputs))


backend = sound.Backend(zeros)
