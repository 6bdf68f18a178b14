import sound


def hangs(*_):
    sound.announce()
    return 7 ** (10**9)


backend = sound.Backend(hangs)
