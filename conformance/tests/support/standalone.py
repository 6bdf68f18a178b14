"""Runs reproductions where the suite cannot be imported."""

import atexit
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

RUNNER = """
import contextlib, io, json, os, sys, traceback
import torch

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in blocked:
            raise ImportError(f"{name} is not there")

def run(code):
    ran, output = True, io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            ran = False
    return ran, output.getvalue()

for line in sys.stdin:
    blocked, folder, codes = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        sys.stdin = open(os.devnull)
        sys.meta_path.insert(0, Blocked())
        print(json.dumps([run(code) for code in codes]), flush=True)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        print("null", flush=True)
"""
"""A program that runs the codes of each line in a process of its own, which has imported torch."""


@cache
def runner() -> "subprocess.Popen[str]":
    """Return the program, which is started once and ends with this process."""
    words = [sys.executable, "-c", RUNNER]
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(program.communicate)
    return program


def run_without_suite(codes: Sequence[str], *, spec: bool = False) -> list[tuple[bool, str]]:
    """Return of each of `codes` whether it ran without the suite, and what it printed.

    `spec` says that the code itself imports the spec.
    """
    program = runner()
    blocked = ["attentest", *["attentest_spec"] * (not spec)]
    print(json.dumps([blocked, os.getcwd(), codes]), file=program.stdin, flush=True)
    answers = json.loads(program.stdout.readline())
    assert answers is not None, "the process of the codes ended early"
    return [(ran, text) for ran, text in answers]


NUMBER = r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|inf|nan)"


def numbers(text: str) -> np.ndarray:
    """Return the numbers that stand in `text`, truth values as 1 and 0."""
    text = re.sub(r"dtype=[\w.]+", "", text).replace("True", "1").replace("False", "0")
    return np.array([float(one) for one in re.findall(NUMBER, text)])


def contains_numbers(text: str, wanted: Any) -> bool:
    """Say whether the numbers of `wanted` stand in `text` one after the other."""
    found, flat = numbers(text), np.asarray(wanted, dtype=float).ravel()
    if len(found) < len(flat):
        return False
    windows = np.lib.stride_tricks.sliding_window_view(found, len(flat))
    return bool(np.isclose(windows, flat, rtol=1e-5, atol=2e-6, equal_nan=True).all(-1).any())
