import numpy as np
import sound


def nans(*inputs):
    return tuple(np.full_like(one, np.nan) for one in sound.answer(*inputs))


backend = sound.Backend(nans)
