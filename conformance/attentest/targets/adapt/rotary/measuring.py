"""The choices of rotary positions that numbers show, and how certain a form is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import torch

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.rotary.forms import STYLES, Form
from attentest.targets.adapt.rotary.nearest import nearest, pairs_of
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.rotary import rotary
from attentest_spec.setting import Floats, Tokens
from attentest_spec.torch import DTYPES, to_array
from attentest_spec.torch.values import cast_real

SIZES = Sizes(d_model=32, heads=2, max_length=24)
"""Heads of 16 columns: batch, heads and length of the probe differ."""

X = np.random.default_rng(11).normal(size=(3, 2, 5, 16))
GIVEN = {
    "batch": np.array([[0, 1, 2, 3, 4], [9, 8, 11, 3, 20], [2, 3, 4, 5, 6]]),
    "row": np.array([[9, 8, 11, 3, 20]] * 3),
    "rows": np.array([[9, 8, 11, 3, 20]] * 3),
    "offset": np.array([[7, 8, 9, 10, 11]] * 3),
    "offset-array": np.array([[7, 8, 9, 10, 11]] * 3),
}
"""Positions that differ in what each style can carry."""

_CLOSE = 1e-5
"""The largest relative difference of tables in single precision, at the positions of a probe."""

_EXACT = 1e-11


@dataclass(frozen=True)
class Shown:
    """The form and the choices that come closest, and how much of the output they explain.

    `wrong` counts the numbers that differ, of both probes; `sure` says that the reading is right
    although they do: the first token of every head is unchanged, and all later ones are turned.
    """

    form: Form
    choices: Choices
    wrong: int
    sure: bool


def shown(forms: Iterable[Form], bases: list[float]) -> list[Shown]:
    """Return what each form shows that answers at all: those that fit, then those surely read.

    Of equal ones the one with the fewest differences comes first, then the one that is tried first.
    A sequence that comes first is shown by numbers without a difference alone.
    """
    every = (one for form in forms if (one := _of_form(form, bases)) is not None)
    found = [one for one in every if one.form.layout != "sequence-first" or not one.wrong]
    return sorted(found, key=lambda one: (one.wrong > 0, not one.sure, one.wrong))


def _of_form(form: Form, bases: list[float]) -> Shown | None:
    """Return what a form shows.

    Where the queries or the keys alone have the numbers of an option, that option is meant: the
    others are turned by mistake.
    """
    options = _options(tuple(bases))
    seen = _seen(form, options)
    if seen is None:
        return None
    plain, counts = seen
    best = int(np.argmin(counts))
    if counts[best]:
        each = [_seen(one, options) for one in _unequal(form)]
        fits = [one[1].index(0) for one in each if one is not None and 0 in one[1]]
        pairs = pairs_of(form, X, SIZES, lambda form, x: answer(form, x, None))
        best = min(fits, default=nearest(options, counts, pairs))
    choices = options[best]
    exact = Setting(SIZES, choices)
    if counts[best] == 0 and np.abs(plain - rotary(exact, X)).max() > _EXACT:
        choices = choices.but(rotary_arithmetic="float32")
    return Shown(form, choices, counts[best], _sure(plain))


def _unequal(form: Form) -> list[Form]:
    """Return the forms of the queries and of the keys alone, where the two are turned otherwise."""
    parts = [replace(form, alone=one) for one in (0, 1)]
    first, second = (answer(one, X, None) for one in parts)
    if first is None or second is None or np.abs(first - second).max() <= _CLOSE:
        return []
    return parts


def _seen(form: Form, options: Sequence[Choices]) -> tuple[Floats, list[int]] | None:
    """Return what a form gives without positions, and how many numbers differ by option."""
    plain = answer(form, X, None)
    if plain is None:
        return None
    asked = GIVEN.get(form.style)
    given = None if asked is None else answer(form, X, asked)
    if asked is not None and given is None:
        return None
    return plain, [_wrong(plain, one, None) + _wrong(given, one, asked) for one in options]


def answer(
    form: Form,
    x: Floats,
    positions: Tokens | None,
    precision: str = "float64",
    sizes: Sizes = SIZES,
) -> Floats | None:
    """Return the output (B, H, L, E), None where there is none of the shape and precision of x."""
    dtype = DTYPES[precision]
    try:
        with undisturbed():
            built = form.build(sizes)
            if isinstance(built, torch.nn.Module):
                cast_real(built, dtype)
            tensor = torch.from_numpy(x).to(dtype)
            places = None if positions is None else torch.from_numpy(positions)
            found = form(built, tensor, places)
    except Exception:  # code that a user wrote may raise anything
        return None
    if not isinstance(found, torch.Tensor) or found.shape != tensor.shape:
        return None
    if found.dtype != dtype and precision not in ("float64", "float32"):
        return None
    return to_array(found).astype(float)


@lru_cache(64)
def _options(bases: tuple[float, ...]) -> list[Choices]:
    """Return the choices that are tried, the usual ones first."""
    values: list[Value] = [*dict.fromkeys([*bases, 1e4, 5e5, 1e6, 1e5])]
    parts = [("whole", "contiguous")]
    parts += [(one, kind) for one in (0.5, 0.25, 0.75) for kind in ("contiguous", "proportional")]  # type: ignore[misc]
    pairs, directions = ("adjacent", "halves"), ("forward", "backward")
    return [
        Choices(
            rotary_pairs=pair,
            rotary_base="10000" if base == 1e4 else base,
            rotary_width=part,
            rotary_partial=kind,
            rotary_direction=direction,
        )
        for base, (part, kind), pair, direction in product(values, parts, pairs, directions)
    ]


def _wrong(found: Floats | None, choices: Choices, positions: Tokens | None) -> int:
    """Return how many numbers differ from those under `choices`."""
    if found is None:
        return 0
    expected = rotary(Setting(SIZES, choices), X, positions)
    return int((~(np.abs(found - expected) <= _CLOSE * np.abs(X).max())).sum())


def _sure(found: Floats) -> bool:
    """Say whether the first tokens are as they were, and others are not, in every head."""
    still = np.abs(found - X).max(axis=-1) <= _CLOSE
    return bool(still[:, :, 0].all() and not still[:, :, 1:].any())


def kinds(form: Form) -> tuple[str, ...]:
    """Return the kinds of positions that a form serves."""
    return STYLES[form.style]


def precisions(form: Form) -> tuple[str, ...]:
    """Return the precisions in which a form answers in the precision of x."""
    return tuple(one for one in DTYPES if answer(form, X, None, one) is not None)
