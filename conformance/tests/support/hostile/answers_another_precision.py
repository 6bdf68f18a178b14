import numpy as np
import sound


def narrow(*inputs):
    output, weights = sound.answer(*inputs)
    return output.astype(np.float32), weights.astype(np.float32)


backend = sound.Backend(narrow)
