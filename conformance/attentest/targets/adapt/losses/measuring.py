"""Measures what a loss takes, where its smoothed mass goes, and what it divides by."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attentest.targets.adapt.losses.calling import MASKS, SHAPES, LossCall
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import CHOICES, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.loss import loss
from attentest_spec.setting import Array, Floats, Setting

WORDS = 7
PAD = 3
RATE = 0.3
USUAL_RATES = (0.0, 0.1)
"""Rates of label smoothing that no argument sets."""

MARKERS = (-100, -1)
FIXED_PADS = (0, 1)
"""The values that padding may have in code that takes no pad id: a marker, or an id."""

LOOSE = 1e-5
"""Relative difference that counts as none: how exact it is, the clauses judge."""

ROUNDING = 1e-11
"""Relative difference beyond the rounding of double precision."""

SIZES = Sizes(source_vocabulary=WORDS, target_vocabulary=WORDS, source_pad=PAD, target_pad=PAD)
Build = Callable[[Sizes], Any]


@dataclass(frozen=True)
class Case:
    """An output of positive numbers (B, T, V), a target (B, T), and the sizes of a loss."""

    output: Floats
    target: Array
    sizes: Sizes

    def wanted(self, choices: Choices) -> float:
        """Return the loss of the reference under `choices`."""
        return float(loss(Setting(self.sizes, choices), self.output, self.target))

    def found(self, build: Build, call: LossCall) -> float | str:
        """Return the loss of the code, or what it raised or returned in its place."""
        try:
            with undisturbed():
                made = call(
                    build(self.sizes), torch.from_numpy(self.output), torch.from_numpy(self.target)
                )
        except Exception as failure:  # code that a user wrote may raise anything
            return f"{type(failure).__name__}: {failure}"
        if isinstance(made, Tensor) and made.ndim == 0:
            return float(made)
        shape = tuple(made.shape) if isinstance(made, Tensor) else type(made).__name__
        return f"it returns {shape}, not one number"


def case(*, pad: int = PAD, rate: float = 0.0, padding: bool = False) -> Case:
    """Return one case; its sequences have different numbers of targets where there is padding."""
    rng = np.random.default_rng(8)
    # No word that may be a fixed pad id.
    target = np.array([[2, 5, 4], [6, 4, 2]])
    if padding:
        target[0, 1:] = pad
    output = rng.uniform(0.1, 0.9, size=(2, 3, WORDS))
    return Case(output, target, SIZES.but(target_pad=pad, smoothing=rate))


def same(found: float | str, wanted: float, tolerance: float = LOOSE) -> bool:
    """Say whether two losses are one, up to rounding."""
    return isinstance(found, float) and abs(found - wanted) <= tolerance * max(abs(wanted), 1e-2)


def variations(axes: Sequence[str], declared: Mapping[str, Value]) -> Iterator[Choices]:
    """Yield the choices with all combinations of `axes`; those `declared` stay as they are."""
    options = [[declared[one]] if one in declared else CHOICES[one].names for one in axes]
    for values in product(*options):
        yield Choices.of({**declared, **dict(zip(axes, values, strict=True))})


PLAIN = ("loss_input", "loss_normaliser")
SMOOTHED = ("smoothed_mass", "loss_measure")


def forms(call: LossCall) -> Iterator[LossCall]:
    """Yield `call` in all shapes, with all forms of a mask, for a number or a tuple of several."""
    for shape in ("rows",) if call.lengths else SHAPES:
        for form in MASKS if call.mask else ("keep",):
            for part in (None, 0):
                yield replace(call, shape=shape, form=form, part=part)


@dataclass(frozen=True)
class Measured:
    """The call of a loss, its choices, and its fixed rate and pad id; None where they follow.

    `certain` says that the reference gives all of its numbers, padding and smoothing included,
    `exact` that they agree to the last digits of double precision, `smoothed` that smoothed targets
    without padding show how their mass is shared, and `counts_all` that every word is counted.
    """

    call: LossCall
    choices: Choices
    rate: float | None
    pad: int | None
    certain: bool
    exact: bool = True
    smoothed: bool = True
    counts_all: bool = False


def measured(
    build: Build, call: LossCall, known: frozenset[str], declared: Mapping[str, Value]
) -> Measured | list[str]:
    """Return what the numbers of a loss show; what each call gave where they show nothing.

    `known` are the sizes that the code gets. Padding and smoothing are left out first: there most
    mistakes do not show, and what the loss takes does.
    """
    rates = (0.0,) if "smoothing" in known else USUAL_RATES
    refusals: list[str] = []
    for tried in forms(call):
        for rate in rates:
            axes = (*PLAIN, *SMOOTHED) if rate else PLAIN
            plain = case(rate=rate)
            found = plain.found(build, tried)
            if isinstance(found, str):
                refusals.append(found)
                break
            for choices in variations(axes, declared):
                if same(found, plain.wanted(choices)):
                    fixed = None if "smoothing" in known else rate
                    return _whole(build, tried, choices, known, declared, fixed)
            refusals.append(f"a loss of {found:.6g}, which no option gives")
    return list(dict.fromkeys(refusals))


def _whole(
    build: Build,
    call: LossCall,
    plain: Choices,
    known: frozenset[str],
    declared: Mapping[str, Value],
    fixed: float | None,
) -> Measured:
    """Return what padding and smoothing show, given what the loss takes and divides by."""
    rate = RATE if fixed is None else fixed
    base = {**declared, **{axis: plain[axis] for axis in PLAIN}}
    if fixed:
        base |= {axis: plain[axis] for axis in SMOOTHED}
    for pad, marker in _paddings(call, known):
        marked = replace(call, marker=marker)
        padded = case(pad=pad, rate=rate, padding=True)
        found = padded.found(build, marked)
        for choices in variations(SMOOTHED, base):
            if same(found, padded.wanted(choices)):
                own = None if marker is not None or _follows(call, known) else pad
                shown = _empty(build, marked, padded, choices)
                exact = same(found, padded.wanted(choices), ROUNDING)
                return Measured(marked, shown, fixed, own, True, exact)
    unpadded = case(rate=rate)
    found = unpadded.found(build, call)
    fitting = (one for one in variations(SMOOTHED, base) if same(found, unpadded.wanted(one)))
    shared = next(fitting, None)
    shown = _empty(build, call, unpadded, shared or Choices.of(base))
    counts_all = (
        shared is not None and not _follows(call, known) and _counts_all(build, call, rate, shared)
    )
    return Measured(
        call,
        shown,
        fixed,
        None,
        certain=False,
        smoothed=shared is not None,
        counts_all=counts_all,
    )


def _counts_all(build: Build, call: LossCall, rate: float, choices: Choices) -> bool:
    """Say whether each word counts as a target, whatever id it has."""

    def counts(pad: int) -> bool:
        words = np.array([one for one in range(WORDS) if one != pad])
        given = replace(case(pad=pad, rate=rate), target=words.reshape(2, 3))
        return same(given.found(build, call), given.wanted(choices), ROUNDING)

    return counts(0) and counts(WORDS - 1)


def _follows(call: LossCall, known: frozenset[str]) -> bool:
    return "target_pad" in known or bool(call.mask or call.lengths)


def _paddings(call: LossCall, known: frozenset[str]) -> Iterator[tuple[int, int | None]]:
    """Yield the pad ids and markers that padding may be."""
    if _follows(call, known):
        yield PAD, None
        return
    yield from ((PAD, marker) for marker in MARKERS)
    yield from ((pad, None) for pad in FIXED_PADS)


def _empty(build: Build, call: LossCall, given: Case, choices: Choices) -> Choices:
    """Return the choices with what nothing but padding gives."""
    nothing = replace(given, target=np.full_like(given.target, given.sizes.target_pad))
    found = nothing.found(build, call)
    shown = "zero" if found == 0 else "nan" if found != found else "unspecified"
    return choices.but(loss_without_targets=shown)


def shifts_itself(build: Build, call: LossCall, declared: Mapping[str, Value]) -> bool:
    """Say whether the loss compares the output at a step with the target of the next one."""
    given = case()
    shifted = replace(given, output=given.output[:, :-1], target=given.target[:, 1:])
    for tried in forms(call):
        found = given.found(build, tried)
        if any(same(found, shifted.wanted(one)) for one in variations(PLAIN, declared)):
            return True
    return False
