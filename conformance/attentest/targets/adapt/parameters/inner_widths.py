"""The inner width of a feed-forward network whose constructor is not given it."""

import inspect
from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import gcd
from typing import NamedTuple

from torch import nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Attempt, Unclear
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Limits, Sizes, Table
from attentest_spec.mapping import locate

_INNER = (
    "inner.weight",
    "experts.0.inner.weight",
    "feed_forward.inner.weight",
    "layers.0.feed_forward.inner.weight",
)
"""The path of the inner layer of a feed-forward network in a component that has one."""

_TRIED = (
    SIZES.but(d_model=24),
    SIZES.but(d_model=60),
    SIZES.but(d_model=2, heads=1),
    SIZES.but(d_model=5, heads=1),
)
"""Sizes with other widths of the model than those of the probe."""

_WIDE = SIZES.but(d_model=768, heads=1)
"""Sizes at which a width that is rounded up to a large multiple is no constant any more."""

_OTHER_INNER = SIZES.but(d_ff=21)
"""Sizes with another inner width: one that is rounded may be as wide as the model by chance."""

_PARTS = 64
"""The largest denominator of the ratio of the two widths."""


_BETWEEN = tuple(range(2, 132))
"""Model widths up to those that are judged; a rule of rounding has to hold at all of them."""

_LARGE = (192, 256, 384, 512, 768, 1024)
"""Model widths that tell multiples of large numbers apart."""

ROUNDING_WIDTHS = (*_BETWEEN, *_LARGE)

_MOST_PARTS = 6
"""The largest denominator of a ratio whose product is rounded."""


class InnerWidth(NamedTuple):
    """The rule of an inner width that no argument sets; None for what it does not have."""

    ratio: float | None = None
    width: int | None = None
    multiple: int = 1


def rounded_inner(widths: Mapping[int, int]) -> InnerWidth | None:
    """Return the rule by which inner `widths` are rounded up to a multiple, by the model's widths.

    None where no ratio gives them all, or too few are known.
    """
    if not {*_LARGE} & {*widths} or len(widths) < len(_LARGE):
        return None
    common = gcd(*widths.values())
    for multiple in (one for one in range(common, 1, -1) if common % one == 0):
        for ratio in _ratios(widths, multiple):
            whole = float(ratio) if ratio.denominator > 1 else int(ratio)
            limits = Limits(inner=whole, inner_multiple=multiple)
            if all(limits.fitted(Sizes(d_model=w)).d_ff == one for w, one in widths.items()):
                return InnerWidth(whole, None, multiple)
    return None


def _ratios(widths: Mapping[int, int], multiple: int) -> list[Fraction]:
    """Return the ratios that the largest width allows, those of small denominators first."""
    wide = max(widths)
    low, high = Fraction(widths[wide] - multiple, wide), Fraction(widths[wide] + 1, wide)
    return [
        Fraction(numerator, denominator)
        for denominator in range(1, _MOST_PARTS + 1)
        for numerator in range(int(low * denominator), int(high * denominator) + 1)
        if low < Fraction(numerator, denominator) < high
    ]


def fixed_inner(code: Code, probe: Probe, table: Table) -> InnerWidth:
    """Return the inner width as a multiple of the model's, or else itself; empty where d_ff is it.

    Raises Unclear where it is neither, nor such a multiple that is rounded up.
    """
    first = _inner_width(probe.built, table, SIZES.d_model)
    if first is None:
        return InnerWidth()
    widths = {SIZES.d_model: first, **_others(code, table, _TRIED)}
    if set(widths.values()) == {first}:
        widths |= _others(code, table, (_WIDE,))
    if len(widths) > 1 and set(widths.values()) == {first}:
        return InnerWidth(width=first)
    for width, inner in sorted(widths.items(), reverse=True):
        ratio = Fraction(inner, width).limit_denominator(_PARTS)
        if all(int(ratio * one) == other for one, other in widths.items()):
            return InnerWidth(int(ratio) if ratio.denominator == 1 else float(ratio))
    tried = (SIZES.but(d_model=width, heads=1) for width in ROUNDING_WIDTHS)
    rounded = rounded_inner({SIZES.d_model: first, **_others(code, table, tried)})
    if rounded is not None:
        return rounded
    said = ", ".join(f"{other} at {one}" for one, other in sorted(widths.items()))
    raise Unclear(
        f"The inner width of {code.name} is no multiple of the model's and no constant ({said}): "
        f"it rounds the width that it computes.",
        "Say which argument sets it with --argument d_ff=NAME, or fix what rounds it with --give "
        "NAME=VALUE.",
        attempts=_unrounded(code.construction),
    )


def _others(code: Code, table: Table, tried: Iterable[Sizes]) -> dict[int, int]:
    """Return the inner widths at sizes that are tried, by the model's, as far as it is built."""
    found = {}
    for sizes in tried:
        inner = _inner_width(_built(code, sizes), table, sizes.d_model)
        if inner is not None:
            found[sizes.d_model] = inner
    return found


def _built(code: Code, sizes: Sizes) -> object:
    """Return `code` built at `sizes`, None where that is refused."""
    try:
        with undisturbed():
            return code.build(sizes)
    except Exception:  # code that a user wrote may raise anything
        return None


def _inner_width(built: object, table: Table, width: int) -> int | None:
    """Return the inner width of a network that is built for a model `width`, None for none."""
    own = dict(built.named_parameters()) if isinstance(built, nn.Module) else {}
    for name in _INNER:
        try:
            place = locate(name, table)
            shape = own[place.stored].shape
        except KeyError:
            continue
        if place.stored != place.name:  # of one of the experts that are stacked
            return int(place.read(own).shape[0])
        _, packed = place.part or (0, 1)
        axes = [one for one in shape if one > 1]
        if width in axes:
            axes.remove(width)
        return max(axes, default=width) // packed
    return None


def shared_inner(probe: Probe, table: Table) -> float | None:
    """Return the width of a shared expert as a multiple of that of the others, None for none."""
    own = dict(probe.built.named_parameters()) if isinstance(probe.built, nn.Module) else {}
    try:
        shared, other = (
            locate(f"{name}.outer.weight", table).read(own).shape[-1]
            for name in ("shared_expert", "experts.0")
        )
    except KeyError:
        return None
    return float(shared / other)


def sets_inner_width(code: Code, probe: Probe, table: Table) -> bool:
    """Say whether an argument is the inner width; Unclear where it is another than was given.

    Matrices may be square, as wide as the model whatever that is, and an object of settings may
    have a field of that name that no code reads.
    """
    if "d_ff" not in code.known:
        return False
    width = _inner_width(probe.built, table, SIZES.d_model)
    wide = _inner_width(_built(code, _OTHER_INNER), table, SIZES.d_model)
    if wide == width and wide not in (SIZES.d_ff, None) and _is_of_settings(code):
        return False
    square = wide == width == SIZES.d_model
    if width not in (None, SIZES.d_ff) and not square:
        raise Unclear(
            f"{code.name} has an inner width of {width} where it is built with {SIZES.d_ff}: it "
            f"rounds or scales the width that it is given.",
            "Judge a class whose width is the given one; a recipe in a file of your own can give "
            "it the width that leads to sizes.d_ff.",
            attempts=_unrounded(code.construction),
        )
    return True


def _is_of_settings(code: Code) -> bool:
    """Say whether the inner width is a field of settings, and no argument of its own."""
    held = code.construction.fillings.values() if code.construction is not None else ()
    made = [one.value for one in held if "d_ff" in one.settles]
    return bool(made) and all(
        isinstance(one, Construction)
        and not (inspect.isclass(one.make) and issubclass(one.make, nn.Module))
        for one in made
    )


def _unrounded(built: Construction | None) -> list[Attempt]:
    """Return attempts at 1 for each whole number that is no size: a width is a multiple of it."""
    arguments = {} if built is None else constructor_arguments(built.make)
    return [
        Attempt(given={own: 1})
        for own, one in arguments.items()
        if type(one.default) is int and built is not None and own not in built.fillings
    ]
