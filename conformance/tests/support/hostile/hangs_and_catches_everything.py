import signal
import time

import sound


def hangs(*_):
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    sound.announce()
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            continue


backend = sound.Backend(hangs)
