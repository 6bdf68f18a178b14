import signal

import sound


def changes(*inputs):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return sound.answer(*inputs)


backend = sound.Backend(changes)
