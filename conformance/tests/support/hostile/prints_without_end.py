import sys

import sound


def prints(*_):
    while True:
        sys.stdout.write("all work and no play " * 1000)
        sys.stderr.write("all work and no play " * 1000)


backend = sound.Backend(prints)
