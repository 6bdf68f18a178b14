"""Methods of a child process, for the tests of processes."""

import os
import subprocess
import sys
import time

from attentest.harness.errors import NotConvertible, Unavailable


def events(tell, number):
    for step in range(number):
        tell({"step": step})
    return number


def raises(kind):
    raise {"Unavailable": Unavailable, "NotConvertible": NotConvertible}.get(kind, KeyError)("so")


def dies(code):
    print("its last line")
    os._exit(code)


def starts(many):
    for _ in range(many):
        subprocess.Popen(["/bin/sleep", "86397.5"], start_new_session=True, env={})
    return many


def takes(mebibytes):
    held = bytearray(mebibytes * 2**20)
    held[::4096] = b"x" * (mebibytes * 256)
    time.sleep(86397.5)


METHODS = {
    "echo": lambda value: value,
    "events": events,
    "raises": raises,
    "dies": dies,
    "sleeps": lambda: time.sleep(86397.5),
    "starts": starts,
    "takes": takes,
    "unreadable": lambda: sys,
    "alone": lambda: "" if sys.stdin.read() else os.environ["OMP_NUM_THREADS"],
}
