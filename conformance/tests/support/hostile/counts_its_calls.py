import itertools

import sound

calls = itertools.count(1)


def tires(*inputs):
    output, weights = sound.answer(*inputs)
    return (output if next(calls) % 3 else output + 1), weights


backend = sound.Backend(tires)
