"""Assertions that several chapters share: precisions, declared choices, round trips, dropout."""

from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import Annotated

import numpy as np

from attentest.harness.copies import cast
from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, error_bound, fits, largest, rounding
from attentest.testing.assertions import equal, finite, holds, matches, near
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, Sizes
from attentest_spec.choices import Value
from attentest_spec.contract import Input
from attentest_spec.setting import Array, Floats

HALF_PRECISIONS = ("bfloat16", "float16")
"""The precisions of two bytes."""

SAMPLES = 500
"""Equal samples over which a mean is taken, enough to show that dropout does not rescale."""

Call = tuple[Probe, tuple[Input, ...]]
"""A part and the inputs of one call of it."""

Make = Callable[[str], Call]
"""Builds a part in the named precision, and draws its parameters and inputs in it."""


def same_precision(probe: Probe, output: Annotated[Array, "*shape"]) -> None:
    """Demand that `output`, of any shape, is in the precision that the part was built in.

    A loss of half precision may be in float32: it is added up, and nothing is computed from it.
    """
    wanted, found = probe.precision, str(output.dtype)
    may_widen = probe.component == "loss" and wanted in HALF_PRECISIONS
    kept = found == wanted or (may_widen and found == "float32")
    holds(kept, f"The output is {found}; the inputs are {wanted}.")


def half_precisions(subject: Subject) -> list[str]:
    """Return the half precisions that the backend computes in; absent where there is none."""
    supported = [one for one in HALF_PRECISIONS if one in subject.limits.precisions]
    if not supported:
        raise Absent(f"{subject.name} computes in no half precision")
    return supported


def matches_in_precision(
    make: Make, precision: str, *, method: str = "", rows: Annotated[Array, "*rows"] | None = None
) -> tuple[Probe, Annotated[Array, "*shape"]]:
    """Demand a finite output in `precision`, within the error that the format allows.

    `make` gets `precision` and must pass it on to `subject.part`, `draw.floats` and
    `draw.parameters` alike; `rows` selects the positions that are judged, on the first axes of the
    output. Absent where the backend
    does not compute in it. The part and its output, of any shape, are returned for what a
    chapter adds.
    """
    probe, inputs = make(precision)
    actual = probe.output(*inputs, method=method)
    same_precision(probe, actual)
    matches(probe, *inputs, actual=actual, method=method, rows=rows, what=f"output in {precision}")
    finite(actual if rows is None else actual[rows])
    return probe, actual


def matches_declared_option(
    probe: Probe,
    *inputs: Input,
    actual: Annotated[Array, "*shape"],
    choice: str,
    others: Collection[Value],
) -> None:
    """Demand that `actual` matches the declared value of `choice`, and none of the `others`.

    `actual` has the shape of the output. The declared value may be among the others, and is left
    out. Draw inputs at which the values
    give different outputs; it is absent where another one fits as well.
    """
    declared = probe.subject.choices
    differing = [declared.but(**{choice: value}) for value in others if value != declared[choice]]
    if not fits(probe, *inputs, actual=actual, choices=declared):
        for other in differing:
            holds(
                not fits(probe, *inputs, actual=actual, choices=other),
                f"{choice} is declared as {declared[choice]}; the numbers show {other[choice]}.",
                actual=actual,
            )
    matches(probe, *inputs, actual=actual)
    for other in differing:
        if fits(probe, *inputs, actual=actual, choices=other):
            raise Absent(
                f"{choice}: the numbers do not distinguish {declared[choice]} from {other[choice]}"
            )


def fits_one_option(
    probe: Probe,
    *inputs: Input,
    actual: Annotated[Array, "*shape"],
    choice: str,
    without: Mapping[str, Floats],
    rows: Annotated[Array, "*rows"] | None = None,
) -> None:
    """Demand that the numbers fit the declared option of `choice`, and no other one.

    `actual` has the shape of the output, `rows` selects positions on its first axes. `without` are
    the parameters that other options have and the declared one may lack, in canonical shapes.
    """
    full = copy(probe)
    full.parameters = {**without, **probe.parameters}
    declared = probe.subject.choices
    options = [option.name for option in CHOICES[choice].options]
    varied = {option: declared.but(**{choice: option}) for option in options}
    fitting = [
        option
        for option, choices in varied.items()
        if fits(full, *inputs, actual=actual, choices=choices, rows=rows)
    ]
    if len(fitting) > 1 and probe.precision != "float64":
        raise Absent(f"{probe.precision} does not distinguish the options of {choice}")
    if not fitting:
        matches(probe, *inputs, actual=actual, rows=rows)
    holds(
        fitting == [declared[choice]],
        f"{choice} is {declared[choice]}, and the numbers are those of {' and '.join(fitting)}.",
        actual=actual,
    )


def matches_declared_biases(probe: Probe, *inputs: Input, choice: str) -> None:
    """Demand biases where `choice` declares them and none where it does not.

    At the `inputs`, such as zeros, nothing but a bias moves the output.
    """
    actual = probe.output(*inputs)
    bare = copy(probe)
    bare.parameters = {
        name: values for name, values in probe.parameters.items() if not name.endswith("bias")
    }
    choices = probe.subject.choices
    shown = "none" if fits(bare, *inputs, actual=actual, choices=choices) else "present"
    if shown != choices[choice] and fits(probe, *inputs, actual=actual, choices=choices):
        raise Absent(f"{choice}: the numbers do not distinguish {choices[choice]} from {shown}")
    holds(
        shown == choices[choice],
        f"{choice} is declared as {choices[choice]}; where nothing but a bias moves the output, "
        f"the numbers show {shown}.",
        actual=actual,
    )
    matches(probe, *inputs, actual=actual)


def parameters_round_trip(
    probe: Probe, exported: Mapping[str, Array], loaded: Mapping[str, Floats]
) -> None:
    """Demand that every parameter that was `loaded` is among the `exported` ones.

    Both have canonical shapes. All are bit-exact but a weight (gamma) of a norm, which may be
    stored minus one: it is exported with the rounding of a number of that size.
    """
    for name, values in loaded.items():
        what = f"parameter {name}, exported after loading,"
        if not name.endswith("gain"):
            equal(as_floats(exported[name]), as_floats(cast(values, probe.precision)), what=what)
            continue
        near(
            probe.subject,
            as_floats(exported[name]),
            values,
            size=max(1.0, largest(values)),
            precision=probe.precision,
            what=what,
        )


def dropout_keeps_mean(probe: Probe, *inputs: Input) -> None:
    """Demand that in training, over many equal samples, the mean is the output of evaluation.

    `inputs` are one sample, in which dropout acts on what the output is linear in. The tolerance is
    six standard errors. Where a call drops the same of all its samples, there are as many calls.
    """
    before = as_floats(probe.output(*inputs))
    many = tuple(
        np.repeat(one, SAMPLES, axis=0) if isinstance(one, np.ndarray) else one for one in inputs
    )
    exact = 2 * error_bound(probe, inputs, before)
    probe.train()
    trained = as_floats(probe.output(*many))
    if (np.ptp(trained, axis=0) <= exact).all():
        trained = np.concatenate([as_floats(probe.output(*inputs)) for _ in range(SAMPLES)])
    probe.eval()
    difference = np.abs(trained.mean(axis=0) - before[0])
    exact += rounding(probe.precision, SAMPLES) * largest(trained)
    tolerance = 6 * trained.std(axis=0) / SAMPLES**0.5 + exact
    holds(
        bool((difference <= tolerance).all()),
        f"At a dropout rate of {probe.sizes.dropout}, the mean of {SAMPLES} equal samples in "
        f"training differs by {difference.max():.3g} from the output of evaluation.",
    )


def dropout_off_in_evaluation(
    subject: Subject, draw: Draw, component: str, sizes: Sizes, *inputs: Input
) -> None:
    """Demand that dropout does nothing in evaluation mode, before and after training mode."""
    parameters = draw.parameters(component, sizes)
    rate = 0.5 if subject.limits.dropout else 0.0
    probe = subject.part(component, sizes.but(dropout=rate), parameters=parameters)
    first = probe.output(*inputs).copy()
    matches(probe, *inputs, actual=first)
    equal(probe.output(*inputs), first, what="output of the second call")
    probe.train()
    probe.output(*inputs)
    probe.eval()
    equal(probe.output(*inputs), first, what="output after training mode and back")
    without = subject.part(component, sizes.but(dropout=0.0), parameters=parameters)
    equal(without.output(*inputs), first, what="output without a dropout rate")
