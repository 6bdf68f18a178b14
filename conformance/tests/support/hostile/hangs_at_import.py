import time

import sound

sound.announce()
time.sleep(1000)
