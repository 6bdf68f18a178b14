"""Methods of a child process, for the tests of processes."""

import os
import signal
import subprocess
import sys
import time

import psutil

from attentest.harness.errors import NotConvertible, Unavailable
from attentest.harness.starting import MARK


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


def surroundings(names):
    """Return the folder, the first place of imports, some variables, and the mark outside."""
    with open("/proc/self/environ", encoding="utf-8") as file:
        marks = [one for one in file.read().split("\0") if one == f"{MARK}={os.environ[MARK]}"]
    return os.getcwd(), sys.path[0], [os.environ.get(name) for name in names], marks


def kills_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    os._exit(3)


METHODS = {
    "echo": lambda value: value,
    "events": events,
    "raises": raises,
    "dies": dies,
    "exits": lambda code: sys.exit(code),
    "kills_parent": kills_parent,
    "sleeps": lambda: time.sleep(86397.5),
    "starts": starts,
    "surroundings": surroundings,
    "takes": takes,
    "unreadable": lambda: sys,
    "words": lambda: psutil.Process().cmdline(),
    "alone": lambda: "" if sys.stdin.read() else os.environ["OMP_NUM_THREADS"],
}
