"""Its child goes on as if it were the worker, and holds the pipe open."""

import os

import sound


def forks(*inputs):
    if os.fork():
        os._exit(8)
    import time

    time.sleep(86399.5)


backend = sound.Backend(forks)
