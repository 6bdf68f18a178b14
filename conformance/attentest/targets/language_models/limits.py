"""Limits of a decoder-only model: precisions, lengths, widths and dropout, found by calling it."""

from collections.abc import Collection
from fractions import Fraction

import torch
from torch import nn

from attentest.results.text import summary
from attentest.targets.adapt.assumptions.randomness import is_random_in_training
from attentest.targets.adapt.parameters.inner_widths import (
    ROUNDING_WIDTHS,
    InnerWidth,
    rounded_inner,
)
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import RaisesAsBuilt, Unclear
from attentest.targets.constants.widths import is_built_at_its_width
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.language_models.construction.windows import LONGEST
from attentest.targets.language_models.probing import has_one_key_head
from attentest.targets.precisions import RAISES_AS_BUILT, precisions_of
from attentest_spec import Limits, Place, Sizes, Table
from attentest_spec.torch import DTYPES
from attentest_spec.torch.values import convert


def limits_of(built: Building, call: Call, inner: int, table: Table) -> Limits:
    """Return the limits; `inner` is the inner width at the sizes of the probe.

    `table` is the parameter map.
    """
    fixed, pads = _random(built, call), _untrained(built)
    own = InnerWidth() if "d_ff" in built.known else _inner(built, inner)
    return Limits(
        layers=None if built.otherwise is None else 1,
        trained_pad=not pads,
        pad=pads[0] if pads else None,
        dropout="dropout" in built.known and not fixed,
        fixed_dropout=fixed,
        precisions=precisions_of(lambda name: _answer(built, call, name) is not None),
        masks=("none",),
        positions=("none",),
        odd_width=not is_built_at_its_width(built.expression)
        and _answer(built, call, "float32", PROBE.but(d_model=15, heads=3, kv_heads=1)) is not None,
        least_width=_least_width(built, call),
        inner=own.ratio,
        inner_multiple=own.multiple,
        one_key_head=has_one_key_head(built),
        fewest_heads=2 if _lacks_with_one_head(built, table) else 1,
        length=_length(built, call),
    )


def demand_answer_as_built(built: Building, call: Call, name: str) -> None:
    """Raise Unclear where a model raises as it is built, though it answers in double precision."""
    try:
        with undisturbed():
            call.compiled()(built(PROBE).eval(), probe_tokens())
    except Exception as failure:  # code that a user wrote may raise anything
        raised = summary(failure, 120)
        said = RAISES_AS_BUILT.format(name, torch.get_default_dtype(), raised)
        raise RaisesAsBuilt(said) from failure


def _untrained(built: Building) -> list[int]:
    """Return the ids whose rows in a table of tokens get no gradient."""
    with undisturbed():
        model = built(PROBE)
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding)]
    shape = PROBE.target_vocabulary, PROBE.d_model
    return [
        one.padding_idx
        for one in tables
        if one.padding_idx is not None and tuple(one.weight.shape) == shape
    ]


def _answer(
    built: Building, call: Call, precision: str, sizes: Sizes = PROBE, length: int = 7
) -> torch.Tensor | None:
    """Return the output in its precision; None where there is none, or it has another one."""
    try:
        with undisturbed():
            model = convert(built(sizes), precision, "cpu").eval()
            tokens = probe_tokens()[:, :1].repeat(1, length)
            found = call.compiled()(model, tokens)
    except Exception:  # code that a user wrote may raise anything
        return None
    right = isinstance(found, torch.Tensor) and found.dtype == DTYPES[precision]
    return found if right else None


def _least_width(built: Building, call: Call) -> int:
    """Return the smallest even width at which there is an answer, 1 for that of examples.

    A table of sines may divide by the number of its frequencies less one. Where no width up to 8
    has an answer, that is left to the examples.
    """
    for width in (2, 4, 6, 8):
        sizes = PROBE.but(d_model=width, heads=1, kv_heads=1)
        if _answer(built, call, "float32", sizes) is not None:
            return 1 if width == 2 else width
    return 1


def _lacks_with_one_head(built: Building, table: Table) -> bool:
    """Say whether a model with one head lacks parameters of the map, as an output projection."""
    sizes = PROBE.but(heads=1, kv_heads=1) if "kv_heads" in built.known else PROBE.but(heads=1)
    try:
        with undisturbed():
            alone, several = (
                [name for name, _ in built(one).named_parameters(remove_duplicate=False)]
                for one in (sizes, PROBE)
            )
    except Exception:  # code that a user wrote may raise anything
        return False
    places = [one if isinstance(one, Place) else Place(one) for one in table.values()]
    return any(_is_in(one, several) and not _is_in(one, alone) for one in places)


def _is_in(place: Place, known: Collection[str]) -> bool:
    return any(one in known for one in place.names(known))


def _random(built: Building, call: Call) -> bool:
    """Say whether training mode is random although the model is built with a dropout of 0."""
    with undisturbed():
        model = built(PROBE)
    tokens, function = probe_tokens(), call.compiled()
    try:
        return is_random_in_training(model, lambda: function(model, tokens))
    except Exception:  # a model may answer in another precision alone, and is judged anyway
        return False


def _length(built: Building, call: Call) -> int | None:
    """Return the greatest length of a model, None where an argument says it, or there is none."""
    if built.rows is not None:
        most = min(built.rows, LONGEST)
        return _longest(built, call, PROBE.but(max_length=most), most) or most
    return None if "max_length" in built.known else _longest(built, call)


def _longest(built: Building, call: Call, sizes: Sizes = PROBE, most: int = LONGEST) -> int | None:
    """Return the greatest length that is accepted, None where that is more than `most`."""
    low, high = 7, most
    if _answer(built, call, "float32", sizes, length=high) is not None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        accepted = _answer(built, call, "float32", sizes, length=middle) is not None
        low, high = (middle, high) if accepted else (low, middle)
    return low


def _inner(built: Building, inner: int) -> InnerWidth:
    """Return the inner width as a multiple of the model's, rounded up or not; Unclear for neither.

    Widths that the model refuses, as rotary positions of an odd width do, say nothing of it.
    """
    ratio, tried = Fraction(inner, PROBE.d_model), (48, 60, 84, 192)
    sizes = {width: _matrix_sizes(built, PROBE.but(d_model=width)) for width in tried}
    for width in (64, 80):  # no thirds of these are whole: a product is rounded there
        sizes[width] = _matrix_sizes(built, PROBE.but(d_model=width, heads=4))
    known = {width: held for width, held in sizes.items() if held}
    other = [w for w, held in known.items() if not held & {int(ratio * w), 2 * int(ratio * w)}]
    if not other and len(known) > 1:
        return InnerWidth(float(ratio))
    rounded = rounded_inner({PROBE.d_model: inner, **_single_inner_widths(built)})
    if rounded is not None:
        return rounded
    at = f"no such multiple at {other[0]}" if other else "refused at most others"
    raise Unclear(_NO_RATIO.format(inner, PROBE.d_model, at))


def _single_inner_widths(built: Building) -> dict[int, int]:
    """Return the inner widths at the model's, as far as one size is that of a network alone.

    All other sizes of matrices follow from the width, the heads or the vocabulary. Where two
    matrices are packed there are two such sizes, of which one is twice the other.
    """
    found: dict[int, list[int]] = {}
    for width in ROUNDING_WIDTHS:
        sizes = PROBE.but(d_model=width, heads=1, kv_heads=1)
        known = {PROBE.target_vocabulary, PROBE.max_length, *(n * width for n in (1, 2, 3))}
        found[width] = sorted(_matrix_sizes(built, sizes) - known)
    packed = {width: one[0] for width, one in found.items() if _is_packed(one)}
    single = {width: one[0] for width, one in found.items() if len(one) == 1}
    return packed if len(packed) > len(single) else single


def _is_packed(sizes: list[int]) -> bool:
    """Say whether these are an inner width and twice that."""
    return len(sizes) == 2 and sizes[1] == 2 * sizes[0]


def _matrix_sizes(built: Building, sizes: Sizes) -> set[int]:
    """Return the sizes of all matrices of a model, none where it is refused."""
    try:
        with undisturbed():
            model = built(sizes)
    except Exception:  # code that a user wrote may raise anything
        return set()
    return {size for one in model.parameters() if one.dim() > 1 for size in one.shape}


_NO_RATIO = (
    "Nothing says how wide the inner layer of the network is: {} at a width of {}, and {}. Say "
    "which argument it is with --argument d_ff=NAME, or fix what rounds it with --give NAME=VALUE."
)
