"""Code that is judged in single precision alone: all of it computes in that, or a norm's epsilon.

Some norms have another epsilon in float32 than in all other precisions.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from attentest.analysis.identify import NONE_FITS, Finding, identify
from attentest.targets.adapt import trust
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.limits import any_masks
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.probing import Probe
from attentest.targets.epsilons import epsilon_in_single, norm_of
from attentest.targets.single import SINGLE, in_single
from attentest_spec import Backend, Choices, Limits
from attentest_spec.choices import Value

OF_EPSILON = (
    "assumed that its epsilon in float32, {:g}, is the one that is meant, and judged in float32 "
    "alone: in float64 it is {:g}. If one is meant for all precisions, this is a mistake, and "
    "--strict reports it"
)
ROUNDED = (
    "assumed that the constants of its activation are rounded, as measured: its numbers are those "
    "of {} in float32, and not in float64. It is judged in {}: if it is meant to be exact, this "
    "is a mistake, and --strict reports it"
)
_EPSILONS = {"layer_norm": "norm_epsilon", "rms_norm": "rms_epsilon"}


@dataclass(frozen=True)
class Single:
    """Limits without double precision, what is measured within them, and why, in one sentence."""

    limits: Limits
    findings: dict[str, Finding]
    sentence: str


def single_alone(
    backend: Backend,
    probe: Probe,
    adapter: Adapter,
    found: FoundTable,
    findings: Mapping[str, Finding],
) -> Single | None:
    """Return what holds for `backend` in single precision, None where double precision is judged.

    `findings` are what is measured in double precision.
    """
    given = {**probe.given(adapter, keys=5), **any_masks(adapter)}
    rounded = in_single(backend, lambda: probe.called(adapter, given), findings, found.choices)
    if rounded is not None:
        return Single(*rounded, SINGLE)
    if (activated := _with_rounded_activation(backend, findings)) is not None:
        return activated
    name = _EPSILONS.get(adapter.component, "")
    if not name:
        return None
    shown = {own: one.measured for own, one in findings.items() if one.measured is not None}
    known = Choices.of({**found.choices, **shown})
    norm = norm_of(probe, adapter, found, known)
    own = epsilon_in_single(norm, known) if norm else None
    if own is None:
        return None
    limits = replace(backend.limits, precisions=("float32",))
    again = identify(replace(backend, limits=limits))  # type: ignore[type-var]
    return Single(limits, again, OF_EPSILON.format(own, known[name]))


def _with_rounded_activation(backend: Backend, findings: Mapping[str, Finding]) -> Single | None:
    """Return what holds in single precision for a network whose activation has rounded constants.

    In double precision the `findings` have no activation then, and that is all that does not fit.
    """
    own = findings.get("activation")
    if own is None or own.status != NONE_FITS or "float32" not in backend.limits.precisions:
        return None
    rest = tuple(one for one in backend.limits.precisions if one != "float64")
    limits = replace(backend.limits, precisions=rest)
    again = identify(replace(backend, limits=limits))  # type: ignore[type-var]
    measured = again["activation"].measured if "activation" in again else None
    if measured is None or measured not in _WITH_CONSTANTS or not trust.explained(again):
        return None
    if coarse := tuple(one for one in rest if one not in _WITH_CONSTANTS[measured]):
        said = ROUNDED.format(measured, " and ".join(coarse))
        return Single(replace(limits, precisions=coarse), again, said)
    return None


_WITH_CONSTANTS: Mapping[Value, Collection[str]] = {"gelu": ("float32",), "gelu-tanh": ()}
"""Activations in whose formulas numbers are that code often rounds, and precisions that show it.

The root of 2 has few digits where it is rounded: gradients differ by more than float32 does.
"""
