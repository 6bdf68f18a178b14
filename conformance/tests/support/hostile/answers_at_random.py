import numpy as np
import sound

rng = np.random.default_rng()


def noisy(*inputs):
    output, weights = sound.answer(*inputs)
    return output + rng.normal(size=output.shape), weights


backend = sound.Backend(noisy)
