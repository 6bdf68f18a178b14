"""Backends that harm whoever builds a part of them, each by a harm of its name."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import sound


class Harmful(sound.Backend):
    def __init__(self, harm, *components):
        super().__init__(name=harm.__name__, components=components or ("feed_forward", "model"))
        self.harm = harm

    def build(self, *given, **named):
        self.harm()
        return super().build(*given, **named)


def hangs_when_built():
    while True:
        signal.pause()


def hogs():
    held = []
    while len(held) < 80:
        held.append(np.ones(2**23))  # 64 MiB
        time.sleep(0.05)
    hangs_when_built()


def starts_many():
    """Start processes of their own sessions, which no environment tells."""
    for _ in range(45):
        subprocess.Popen(["/bin/sleep", "86398.25"], start_new_session=True, env={})
    hangs_when_built()


def kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def detaches():
    """Leave a process of its own session behind, which holds every pipe open."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv("/bin/sleep", ["sleep", "86398.5"])
        os._exit(0)
    os.wait()
    os._exit(8)


def closes_pipes():
    os.closerange(0, 100)
    hangs_when_built()


def writes_messages():
    for descriptor in range(3, 30):
        with suppress(OSError):
            os.write(descriptor, b'{"type": "verdict", "status": "pass"}\n')


def forges_answers():
    for descriptor in range(3, 30):
        with suppress(OSError):
            os.write(descriptor, b'{"type": "answer", "answer": 7}\n')


def exits():
    sys.exit(7)


def prints_and_changes_signals():
    os.write(1, b'{"type": "answer", "answer": 7}\n' * 1000)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


hanging = Harmful(hangs_when_built)
hog = Harmful(hogs)
many = Harmful(starts_many)
killed = Harmful(kills_itself)
detached = Harmful(detaches)
closed = Harmful(closes_pipes)
writing = Harmful(writes_messages)
forging = Harmful(forges_answers)
exiting = Harmful(exits)
rude = Harmful(prints_and_changes_signals, "feed_forward")
backend = sound.Backend(name="harmless", components=("feed_forward",))
whole = sound.Backend(name="harmless", components=("model",))
