import numpy as np
import sound


def changes(*inputs):
    np.random.seed(0)
    return sound.answer(*inputs)


backend = sound.Backend(changes)
