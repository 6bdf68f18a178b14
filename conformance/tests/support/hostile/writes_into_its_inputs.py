import sound


def writes(query, key, value, mask):
    result = sound.answer(query, key, value, mask)
    query *= 2
    return result


backend = sound.Backend(writes)
