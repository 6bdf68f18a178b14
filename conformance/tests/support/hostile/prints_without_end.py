import sys

import sound


def prints(*_):
    sound.announce()
    while True:
        sys.stdout.write("all work and no play " * 1000)
        sys.stderr.write("all work and no play " * 1000)


backend = sound.Backend(prints)
