"""One training of a sweep, from its plan to its record; it runs in whatever process is free."""

from dataclasses import replace

from attentest.harness.errors import Absent, BackendError, Unavailable
from attentest.results.text import summary
from attentest.studies.learning.task import BadTask
from attentest.studies.learning.training import Trainer
from attentest.studies.sweep.grid import Plan
from attentest.studies.sweep.record import Record, code_of, key_of
from attentest.targets import resolve
from attentest_spec import Backend, Configurable, UnknownName, Unsupported
from attentest_spec.registry import LoadFailure

_KNOWN = (Unavailable, Unsupported, Absent, BackendError, BadTask, LoadFailure, UnknownName)


def train(plan: Plan, code: str = "") -> Record:
    """Return the record of a training; one that fails has a reason and no points.

    `code` is the checksum of the code that the plan was made with (see :func:`code_of`). Raises
    Unavailable where the code of this process is another one.
    """
    if code and code != code_of(plan.target):
        raise Unavailable(
            "the worker has another version of attentest, of the backend or of a library; install "
            "the same ones there"
        )
    record = blank(plan)
    try:
        backend = built(plan)
        end = Trainer.of(backend, plan.regime, plan.seed).train(
            lambda state: None, lambda step: None
        )
    except _KNOWN as failure:
        return replace(record, reason=str(failure))
    except Exception as failure:  # what a backend answers may have any form
        return replace(record, reason=f"it raised {summary(failure)}")
    return replace(
        record,
        points=tuple(end.points),
        seconds=end.seconds,
        cpu_seconds=end.cpu_seconds,
    )


def blank(plan: Plan) -> Record:
    """Return the record of `plan` without a result."""
    return Record(
        key_of(plan),
        plan.target,
        plan.task,
        plan.choices,
        plan.regime.as_dict(),
        plan.seed,
        levels=plan.levels,
        fault=plan.fault,
    )


def built(plan: Plan) -> Backend:
    """Return the backend of `plan` under its choices, with its mistake where it has one.

    Raises Unsupported for a backend that takes no choices, and Unavailable for choices that cannot
    be together, besides what loading it raises.
    """
    backend = resolve.load(plan.target)
    if plan.fault:
        return _mistaken(plan, backend)
    if not plan.choices:
        return backend
    if not isinstance(backend, Configurable):
        raise Unsupported(f"{plan.target} cannot be built under other choices")
    try:
        return backend.under(plan.choices)
    except ValueError as failure:
        raise Unavailable(f"it cannot be built under these choices: {failure}") from failure


def _mistaken(plan: Plan, backend: Backend) -> Backend:
    """Return the reference model that `backend` is, under the choices of `plan`, with a mistake."""
    from attentest.faults import fault_of, with_faults
    from attentest.faults.reference_models import Plain, reference_backend

    wrong = with_faults(Plain, fault_of(plan.fault))
    return reference_backend(
        wrong, {**backend.choices, **plan.choices}, f"{plan.target}+{plan.fault}"
    )
