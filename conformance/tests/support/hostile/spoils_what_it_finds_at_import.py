"""Changes, while it is imported, what the suite's own code works with."""

import os
import signal
import sys
import warnings

import numpy as np
import sound

np.seterr(all="raise")
warnings.simplefilter("error")
sys.path.clear()
os.chdir("/")
signal.signal(signal.SIGTERM, signal.SIG_IGN)

backend = sound.Backend()
