"""Sentences about the epsilon of norms: the one that numbers show, and the one of an argument."""

from collections.abc import Iterator, Mapping
from math import isclose

import numpy as np

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON
from attentest.targets.adapt.reading import Reading
from attentest.targets.signatures import constructor_arguments
from attentest_spec.choices import Value

OWN = (
    "assumed {}=1e-06: its default, None, is another epsilon in every precision, as torch has it, "
    "and this spec has one for all; --give {}=VALUE sets it"
)
UNUSUAL = (
    "assumed {}={:.4g}, as measured: if you meant {:g}, as torch has it, this is a mistake; "
    "--choice {}=NUMBER judges another"
)
OF_PRECISION = (
    "assumed {}={:.4g}, as measured: that of float64, as torch has it where none is given; "
    "--choice {}=NUMBER judges another"
)
CONTRADICTED = (
    "assumed {choice}={found:.4g}, as measured, though the argument {own} is {given:g}: a mistake "
    "if that is meant; --choice {choice}={given:g} judges it"
)
NONE_AT_ALL = (
    "assumed {choice}=0, as measured: a row of {rows} has no value; if an epsilon is meant, this "
    "is a mistake; --choice {choice}=NUMBER judges it"
)
_OF_SINGLE, _OF_DOUBLE = (float(np.finfo(one).eps) for one in (np.float32, np.float64))
USUAL = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12, _OF_SINGLE)
"""The epsilons of norms that libraries have as defaults."""

_ROWS = {"norm_epsilon": "one number", "rms_epsilon": "zeros"}
"""The rows that have no value without each epsilon."""

_LEAST = 1e-12
"""The smallest epsilon that is distinguished from none."""


def given_for_none(code: Code, reading: Reading) -> Iterator[str]:
    """Yield that an epsilon is given where the default is None, and the user says nothing."""
    held = constructor_arguments(code.thing) if code.construction is not None else {}
    for own, parameter in held.items():
        if (
            code.component == "rms_norm"
            and squashed(own) in EPSILON
            and parameter.default is None
            and own not in reading.given
        ):
            yield OWN.format(own, own)


def measured_epsilons(
    declared: Mapping[str, Value], reading: Reading, arguments: Mapping[str, object]
) -> Iterator[str]:
    """Yield each measured epsilon of a norm that is none, unusual, or not that of an argument."""
    given = {
        own: value
        for own, value in arguments.items()
        if squashed(own.rpartition(".")[2]) in EPSILON and isinstance(value, float)
    }
    for choice in _ROWS:
        found = declared.get(choice)
        if isinstance(found, float) and choice not in reading.choices:
            yield from _said(choice, found, given)


def _said(choice: str, found: float, given: Mapping[str, float]) -> Iterator[str]:
    """Yield what there is to say of the epsilon `found`, beside those that arguments give."""
    alike = {own: one for own, one in given.items() if max(one, found) >= _LEAST}
    if alike and not any(isclose(found, one, rel_tol=0.01) for one in alike.values()):
        own, value = next(iter(alike.items()))
        yield CONTRADICTED.format(choice=choice, found=found, own=own, given=value)
    elif found == 0:
        yield NONE_AT_ALL.format(choice=choice, rows=_ROWS[choice])
    elif isclose(found, _OF_DOUBLE, rel_tol=0.01):
        yield OF_PRECISION.format(choice, found, choice)
    elif not any(isclose(found, one, rel_tol=0.01) for one in (*USUAL, *given.values())):
        yield UNUSUAL.format(choice, found, 1e-5, choice)
