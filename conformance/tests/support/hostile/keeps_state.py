import sound

seen = []


def adds_up(*inputs):
    output, weights = sound.answer(*inputs)
    seen.append(float(output.sum()))
    return output + 1e-3 * sum(seen[:-1]), weights


backend = sound.Backend(adds_up)
