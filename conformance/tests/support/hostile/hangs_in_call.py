import time

import sound


def hangs(*_):
    sound.announce()
    time.sleep(1000)


backend = sound.Backend(hangs)
