"""Identifies a target in a process of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from attentest.analysis.identify import Finding, identify
from attentest.harness.child import Interrupted, Job, answer, asked
from attentest.results.text import line, plain_value, summary
from attentest.targets import resolve
from attentest_spec import UnknownName
from attentest_spec.registry import LoadFailure


def identified(
    target: str,
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
    limit: float = 120.0,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Finding]:
    """Return what :func:`~attentest.analysis.identify.identify` finds, within `limit` seconds.

    Raises LoadFailure where the target cannot be loaded, and Interrupted where its process hangs,
    dies or says something else.
    """
    job = {
        "target": target,
        "components": list(components),
        "precision": precision,
        "device": device,
        "reading": reading,
    }
    try:
        found = asked("attentest.studies.identification", job, limit)
    except Interrupted as how:
        raise Interrupted(f"{target} could not be identified: {how}.") from None
    if "failure" in found:
        raise LoadFailure(found["failure"])
    return {name: Finding.from_dict(one) for name, one in found["findings"].items()}


def _answered(job: Job) -> Job:
    try:
        backend = resolve.load(job["target"], job["reading"])
    except (LoadFailure, UnknownName) as failure:
        return {"failure": line(str(failure), 1000)}
    try:
        found = identify(
            backend, job["components"], precision=job["precision"], device=job["device"]
        )
    except Exception as failure:  # describing a backend runs code of its author
        return {"failure": f"{job['target']} could not be described: {summary(failure)}"}
    return {"findings": {name: plain_value(asdict(one)) for name, one in found.items()}}


if __name__ == "__main__":
    answer(_answered)
