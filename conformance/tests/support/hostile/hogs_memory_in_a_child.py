import subprocess
import sys

import sound

CODE = "import time; held = bytearray(2**30); held[::4096] = b'x' * 2**18; time.sleep(86399.25)"


def hogs(*_):
    subprocess.run([sys.executable, "-c", CODE])


backend = sound.Backend(hogs)
