"""Cases that several chapters check in the same way."""

from collections.abc import Callable, Collection, Mapping
from copy import copy

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

HALVES = ("bfloat16", "float16")
"""The precisions of two bytes."""

SAMPLES = 500
"""Equal samples over which a mean is taken: what dropout leaves out shows as half of a part."""

Call = tuple[Probe, tuple[Input, ...]]
"""A part and the inputs that it is called with."""

Make = Callable[[str], Call]
"""Builds a part in the named precision, and draws its parameters and inputs in it."""


def same_precision(probe: Probe, output: Array) -> None:
    """Demand that `output` is in the precision that the part was built in."""
    wanted = probe.precision
    holds(str(output.dtype) == wanted, f"The output is {output.dtype}; the inputs are {wanted}.")


def halves(subject: Subject) -> list[str]:
    """Return the half precisions that the backend computes in; absent where there is none."""
    found = [one for one in HALVES if one in subject.limits.precisions]
    if not found:
        raise Absent(f"{subject.name} computes in no half precision")
    return found


def half(subject: Subject, draw: Draw) -> str:
    """Draw one of the half precisions that the backend computes in."""
    return draw.choose(halves(subject))


def precise(
    make: Make, precision: str, *, method: str = "", rows: Array | None = None
) -> tuple[Probe, Array]:
    """Demand a finite output in `precision`, within the error that the format allows.

    `make` gets `precision` and must pass it on to `subject.part`, `draw.floats` and
    `draw.parameters` alike; `rows` selects the positions that are judged. Absent where the backend
    does not compute in it. The part and its output are returned for what a chapter adds.
    """
    probe, inputs = make(precision)
    actual = probe.output(*inputs, method=method)
    same_precision(probe, actual)
    matches(probe, *inputs, actual=actual, method=method, rows=rows, what=f"output in {precision}")
    finite(actual if rows is None else actual[rows])
    return probe, actual


def shows(
    probe: Probe, *inputs: Input, actual: Array, choice: str, others: Collection[Value]
) -> None:
    """Demand that `actual` shows what is declared for `choice`, and none of the `others`.

    The declared value may be among the others, and is left out. Draw inputs at which the values
    lie apart: a part that matches the declared one says nothing where they do not.
    """
    declared = probe.subject.choices
    unlike = [declared.but(**{choice: value}) for value in others if value != declared[choice]]
    if not fits(probe, *inputs, actual=actual, choices=declared):
        for other in unlike:
            holds(
                not fits(probe, *inputs, actual=actual, choices=other),
                f"{choice} is declared as {declared[choice]}; the numbers show {other[choice]}.",
                actual=actual,
            )
    matches(probe, *inputs, actual=actual)
    for other in unlike:
        if fits(probe, *inputs, actual=actual, choices=other):
            raise Absent(
                f"{choice}: the numbers cannot tell {declared[choice]} from {other[choice]}"
            )


def alone_fits(
    probe: Probe,
    *inputs: Input,
    actual: Array,
    choice: str,
    without: Mapping[str, Floats],
    rows: Array | None = None,
) -> None:
    """Demand that the numbers fit the declared option of `choice`, and no other one.

    `without` are the parameters that other options have and the declared one may lack.
    """
    full = copy(probe)
    full.parameters = {**without, **probe.parameters}
    declared = probe.subject.choices
    options = [option.name for option in CHOICES[choice].options]
    unlike = {option: declared.but(**{choice: option}) for option in options}
    fitting = [
        option
        for option, choices in unlike.items()
        if fits(full, *inputs, actual=actual, choices=choices, rows=rows)
    ]
    if len(fitting) > 1 and probe.precision != "float64":
        raise Absent(f"{probe.precision} does not tell the options of {choice} apart")
    if not fitting:
        matches(probe, *inputs, actual=actual, rows=rows)
    holds(
        fitting == [declared[choice]],
        f"{choice} is {declared[choice]}, and the numbers are those of {' and '.join(fitting)}.",
        actual=actual,
    )


def shows_biases(probe: Probe, *inputs: Input, choice: str) -> None:
    """Demand biases where `choice` declares them and none where it does not.

    At the `inputs`, such as zeros, nothing but a bias moves the output.
    """
    actual = probe.output(*inputs)
    bare = copy(probe)
    bare.parameters = {
        name: values for name, values in probe.parameters.items() if not name.endswith("bias")
    }
    choices = probe.subject.choices
    found = "none" if fits(bare, *inputs, actual=actual, choices=choices) else "present"
    if found != choices[choice] and fits(probe, *inputs, actual=actual, choices=choices):
        raise Absent(f"{choice}: the numbers cannot tell what is declared from {found}")
    holds(
        found == choices[choice],
        f"{choice} is declared as {choices[choice]}; where nothing but a bias moves the output, "
        f"the numbers show {found}.",
        actual=actual,
    )
    matches(probe, *inputs, actual=actual)


def comes_back(probe: Probe, found: Mapping[str, Array], loaded: Mapping[str, Floats]) -> None:
    """Demand that every parameter that was `loaded` is `found` again.

    All do so to the last bit but a gain, which may be stored less one: it comes back with the
    rounding of a number of that size.
    """
    for name, values in loaded.items():
        what = f"parameter {name}, as it comes back,"
        if not name.endswith("gain"):
            equal(as_floats(found[name]), as_floats(cast(values, probe.precision)), what=what)
            continue
        near(
            probe.subject,
            as_floats(found[name]),
            values,
            size=max(1.0, largest(values)),
            precision=probe.precision,
            what=what,
        )


def keeps_the_mean(probe: Probe, *inputs: Input) -> None:
    """Demand that in training, over many equal samples, the mean is the output of evaluation.

    `inputs` are one sample, in which dropout acts on what the output is linear in. The bound is six
    standard errors. Where a call drops the same of all its samples, there are as many calls.
    """
    before = as_floats(probe.output(*inputs))
    many = tuple(
        np.repeat(one, SAMPLES, axis=0) if isinstance(one, np.ndarray) else one for one in inputs
    )
    room = 2 * error_bound(probe, inputs, before)
    probe.train()
    found = as_floats(probe.output(*many))
    if (np.ptp(found, axis=0) <= room).all():
        found = np.concatenate([as_floats(probe.output(*inputs)) for _ in range(SAMPLES)])
    probe.eval()
    off = np.abs(found.mean(axis=0) - before[0])
    exact = room + rounding(probe.precision, SAMPLES) * largest(found)
    room = 6 * found.std(axis=0) / SAMPLES**0.5 + exact
    holds(
        bool((off <= room).all()),
        f"At a dropout rate of {probe.sizes.dropout}, the mean of {SAMPLES} equal samples in "
        f"training is off by {off.max():.3g} from the output of evaluation.",
    )


def quiet_in_evaluation(
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
