import signal

import sound


def ignore(*_):
    pass


def changes(*inputs):
    signal.signal(signal.SIGINT, ignore)
    return sound.answer(*inputs)


backend = sound.Backend(changes)
