"""Identifies a target in a process of its own, which may hang, crash or print as it likes.

The child writes its findings to a file and to nothing else: no pipe can be filled or held open.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from attentest import targets
from attentest.identify import Finding, identify
from attentest.outcome import summary
from attentest.plain import line, plain_value
from attentest_spec import UnknownName
from attentest_spec.registry import LoadFailure


class Interrupted(Exception):
    """The process did not finish; the text says how it ended."""


def identified(
    target: str,
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
    limit: float = 120.0,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Finding]:
    """Return what :func:`attentest.identify.identify` finds of `target`, within `limit` seconds.

    Raises LoadFailure where the target cannot be loaded, and :class:`Interrupted` where its process
    hangs, dies or says something else.
    """
    job = {
        "target": target,
        "components": list(components),
        "precision": precision,
        "device": device,
        "reading": reading,
    }
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "findings.json"
        how = _ended(json.dumps({**job, "answer": str(answer)}), limit)
        try:
            found = json.loads(answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            raise Interrupted(f"{target} could not be identified: its process {how}.") from None
    if "failure" in found:
        raise LoadFailure(found["failure"])
    return {name: _finding(one) for name, one in found["findings"].items()}


def _finding(plain: Mapping[str, Any]) -> Finding:
    return Finding(**{**plain, "components": tuple(plain["components"])})


def _ended(job: str, limit: float) -> str:
    """Run a child with `job` to its end, and say how it ended."""
    child = subprocess.Popen(
        [sys.executable, "-m", "attentest.identify.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        start_new_session=True,
    )
    try:
        child.communicate(job.encode(), timeout=limit)
    except subprocess.TimeoutExpired:
        return f"gave no answer within {limit:g} seconds"
    finally:
        with suppress(OSError):  # its children are of its group
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    return f"ended with exit code {child.returncode}"


def main() -> None:
    """Read the job, identify, write the answer, and leave without the target's farewells."""
    job = json.loads(sys.stdin.read())
    answer = Path(job["answer"])
    part = answer.with_suffix(".part")
    part.write_text(json.dumps(plain_value(_answered(job))), encoding="utf-8")
    part.rename(answer)
    os._exit(0)


def _answered(job: Mapping[str, Any]) -> dict[str, Any]:
    try:
        backend = targets.load(job["target"], job["reading"])
    except (LoadFailure, UnknownName) as failure:
        return {"failure": line(str(failure), 1000)}
    try:
        found = identify(
            backend, job["components"], precision=job["precision"], device=job["device"]
        )
    except Exception as failure:  # describing a backend runs code of its author
        return {"failure": f"{job['target']} could not be described: {summary(failure)}"}
    return {"findings": {name: asdict(one) for name, one in found.items()}}


if __name__ == "__main__":
    main()
