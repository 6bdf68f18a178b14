import sound


def flat(*inputs):
    output, weights = sound.answer(*inputs)
    return output.reshape(-1), weights


backend = sound.Backend(flat)
