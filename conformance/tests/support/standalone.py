"""Runs reproductions where the suite cannot be imported."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

RUNNER = """
import contextlib, io, json, sys, traceback

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1:]:
            raise ImportError(f"{name} is not there")

sys.meta_path.insert(0, Blocked())
answers = []
for code in json.load(sys.stdin):
    ran, output = True, io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            traceback.print_exc()
            ran = False
    answers.append([ran, output.getvalue()])
json.dump(answers, sys.stdout)
"""


def run_without_suite(codes: Sequence[str], *, spec: bool = False) -> list[tuple[bool, str]]:
    """Return of each of `codes` whether it ran without the suite, and what it printed.

    `spec` says that the code itself imports the spec.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUNNER, "attentest", *["attentest_spec"] * (not spec)],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return [(ran, text) for ran, text in json.loads(done.stdout)]


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
