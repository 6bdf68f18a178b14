import time

import numpy as np
import sound

held = []


def hogs(*_):
    while len(held) < 40:
        held.append(np.ones(2**24))  # 128 MiB
        time.sleep(0.02)
    time.sleep(1000)


backend = sound.Backend(hogs)
