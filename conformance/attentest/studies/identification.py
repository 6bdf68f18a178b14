"""Identifies the choices of a target in a process of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from attentest.analysis.identify import Finding, identify
from attentest.analysis.identify.finding import with_undetermined
from attentest.harness.errors import Unavailable
from attentest.harness.messages import Methods
from attentest.harness.process import Isolation
from attentest.results.text import plain_value, summary
from attentest.studies.participants import Remote, ask, on_target
from attentest.targets import resolve
from attentest.targets.resolve import Target
from attentest_spec import Backend
from attentest_spec.registry import LoadFailure


def identified(
    target: str,
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
    isolation: Isolation | None = None,
    reading: Mapping[str, Any] | None = None,
) -> dict[str, Finding]:
    """Return what :func:`~attentest.analysis.identify.identify` finds in a process with limits.

    Raises LoadFailure where the target cannot be loaded or described, and Unavailable where its
    process is lost.
    """
    participant = Remote(__name__, (target,), isolation or Isolation(), reading)
    try:
        return ask(
            participant,
            "identify",
            lambda found: {name: Finding.from_dict(one) for name, one in found.items()},
            components=list(components),
            precision=precision,
            device=device,
        )
    except Unavailable as failure:
        raise Unavailable(f"{target} could not be identified: {failure}.") from failure


def identify_target(
    target: Target,
    component: str = "",
    components: Sequence[str] = (),
    *,
    precision: str = "",
    device: str = "cpu",
) -> dict[str, Finding]:
    """Measure which option of every choice `target` shows, in this process and without a limit.

    A target is a backend, a function, class or instance, or a string as on the command line;
    `component` is the one that code is which is no backend. Raises as :func:`identified` does.
    """
    backend = resolve.backend_of(target, {"component": component} if component else {})
    return with_undetermined(identify(backend, components, precision=precision, device=device))


def methods(backend: Backend) -> Methods:
    """Return what a participant answers about `backend`."""
    return {"identify": partial(_identify, backend)}


METHODS = on_target(methods)


def _identify(
    backend: Backend, *, components: Sequence[str], precision: str, device: str
) -> dict[str, Any]:
    try:
        found = identify(backend, components, precision=precision, device=device)
    except Exception as failure:  # describing a backend runs code of its author
        raise LoadFailure(f"{backend.name} could not be described: {summary(failure)}") from failure
    return {name: plain_value(asdict(one)) for name, one in with_undetermined(found).items()}
