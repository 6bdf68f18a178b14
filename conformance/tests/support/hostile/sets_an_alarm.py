import signal

import sound


def changes(*inputs):
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    return sound.answer(*inputs)


backend = sound.Backend(changes)
