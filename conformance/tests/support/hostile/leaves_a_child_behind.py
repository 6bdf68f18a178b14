import os
import subprocess

import sound


def dies(*_):
    subprocess.Popen(["sleep", "86399.75"])
    os._exit(6)


backend = sound.Backend(dies)
