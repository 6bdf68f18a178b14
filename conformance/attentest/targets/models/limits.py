"""Limits of a whole model, and norms that it does not call: both are found by calling it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attentest.analysis.identify.measure import fits_at
from attentest.analysis.identify.rounded_heads import rounds_heads
from attentest.analysis.undeclared import effective_limits
from attentest.harness.subject import Subject
from attentest.targets.adapt.assumptions.randomness import is_random_in_training
from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.parameters.inner_widths import (
    ROUNDING_WIDTHS,
    InnerWidth,
    rounded_inner,
)
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.widths import is_built_at_its_width
from attentest.targets.models.inferring import PADS, Inferred, probe_of
from attentest.targets.models.probing import untrained_rows
from attentest.targets.models.trials import Building
from attentest.targets.precisions import RAISES_AS_BUILT, precisions_of
from attentest_spec import Backend, Choices, Limits, Sizes
from attentest_spec.choices import Value
from attentest_spec.mapping import Table, locate
from attentest_spec.torch import DTYPES
from attentest_spec.torch.values import cast_real

LONGEST = 1024
"""The length up to which a model without an argument for it is tried."""


def limits_of(built: Building, inferred: Inferred, table: Table, reading: Reading) -> Limits:
    """Return the limits of a model whose parameters are where `table` says."""
    inner = InnerWidth() if "d_ff" in built.known else _inner(built, table)
    return Limits(
        inner=inner.ratio,
        inner_width=inner.width,
        inner_multiple=inner.multiple,
        dropout="dropout" in built.known,
        precisions=_precisions(built, inferred),
        heads=None if "heads" in built.known else 1,
        own_vocabularies="target_vocabulary" in built.known,
        own_pads=inferred.pads in ("call", "both"),
        pad=inferred.pad,
        odd_width=not is_built_at_its_width(built.expression) and _takes_odd_width(built, inferred),
        trained_pad=_trains_pads(built),
        untrained=() if reading.strict else _untrained(built, inferred),
        length=_length(built, inferred),
        right_padded=tuple(dict.fromkeys([*inferred.lengths, *["target"] * inferred.right_padded])),
    )


def with_rounded_heads(backend: Backend, choices: Mapping[str, Value], explained: bool) -> Limits:
    """Return the limits of `backend`, with that of heads whose width is rounded down.

    `explained` says that the `choices` give its numbers where the heads divide the width.
    """
    known = Choices.of(choices)
    limits = effective_limits(backend, known)
    subject = Subject(backend, choices=known, limits=limits, precision=limits.finest)
    rounded = rounds_heads(subject, "model", explained=explained)
    return replace(backend.limits, rounded_heads=rounded)


def is_random_without_dropout(built: Building, inferred: Inferred) -> bool:
    """Say whether training mode is random although the model is built with a dropout of 0."""
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    call = inferred.call.compiled()
    return is_random_in_training(probe.model, lambda: probe.called(call, *probe.tokens))


def _trains_pads(built: Building) -> bool:
    """Say whether no embedding leaves the row of the pad id without a gradient."""
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    tables = [one for one in model.modules() if isinstance(one, nn.Embedding)]
    return all(one.padding_idx is None for one in tables)


def _untrained(built: Building, inferred: Inferred) -> tuple[int, ...]:
    """Return the ids besides those of padding whose rows its tables never train.

    They are written in the code where the pad ids are not: an argument says these, or a mask.
    """
    sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    rows = untrained_rows(probe_of(built, sizes.but(source_pad=PADS[0], target_pad=PADS[1])).model)
    return () if inferred.pads == "fixed" else tuple(one for one in rows if one not in PADS)


def _length(built: Building, inferred: Inferred) -> int | None:
    """Return the greatest length of a model, None where an argument says it, or there is none."""
    if built.rows is not None:
        return min(built.rows, longest(built, inferred) or built.rows)
    if "max_length" in built.known:
        return None
    return rows_of_vocabulary(built, inferred) or longest(built, inferred)


_FEW = 11
"""The least vocabulary of the examples."""
_ROWS_OF_VOCABULARY = (
    "assumed that no sequence is longer than the vocabulary, as tables of positions have a row for "
    "each of its tokens: a longer one raises"
)


def rows_of_vocabulary(built: Building, inferred: Inferred) -> int | None:
    """Return the least length, where the greatest is the number of tokens, None where it is not."""
    if longest(built, inferred) != DISTINCT.source_vocabulary:
        return None
    few = longest(built, inferred, DISTINCT.but(source_vocabulary=_FEW))
    return few if few == _FEW else None


def with_rows_of_vocabulary(built: Building, inferred: Inferred) -> Building:
    """Return `built` with the assumption on tables of positions of the size of a vocabulary."""
    if "max_length" in built.known or not rows_of_vocabulary(built, inferred):
        return built
    return replace(built, doubts=(*built.doubts, _ROWS_OF_VOCABULARY))


def longest(built: Building, inferred: Inferred, sizes: Sizes = DISTINCT) -> int | None:
    """Return the greatest length that is accepted, None where that is more than is judged."""
    probe = probe_of(built, sizes.but(target_vocabulary=sizes.source_vocabulary))
    call, (_, target) = inferred.call.compiled(), probe.tokens

    def accepted(length: int) -> bool:
        source = torch.ones(len(target), length, dtype=torch.int64)
        return isinstance(probe.called(call, source, target), torch.Tensor)

    low, high = target.shape[1], LONGEST
    if accepted(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if accepted(middle) else (low, middle)
    return low


def _takes_odd_width(built: Building, inferred: Inferred) -> bool:
    """Say whether a model of an odd width can be built and called."""
    sizes = DISTINCT.but(d_model=15, target_vocabulary=DISTINCT.source_vocabulary)
    try:
        probe = probe_of(built, sizes)
    except Exception:  # code that a user wrote may raise anything
        return False
    return isinstance(probe.called(inferred.call.compiled(), *probe.tokens), torch.Tensor)


def demand_answer_as_built(built: Building, inferred: Inferred, name: str) -> None:
    """Raise Unclear where a model raises as it is built, though it answers in double precision."""
    if built.doubled or built.widened:
        return
    sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    probe = probe_of(built, sizes)
    with undisturbed():
        model = built(sizes).eval()
    model.pads, model.longest = (sizes.source_pad, sizes.target_pad), sizes.max_length
    answer = replace(probe, model=model).called(inferred.call.compiled(), *probe.tokens)
    if isinstance(answer, str):
        raise Unclear(RAISES_AS_BUILT.format(name, torch.get_default_dtype(), answer))


def _precisions(built: Building, inferred: Inferred) -> tuple[str, ...]:
    """Return the precisions in which a call answers at all."""
    plain = replace(built, doubled=False, widened=False)
    probe = probe_of(plain, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))

    def answers(name: str) -> bool:
        cast_real(probe.model, DTYPES[name])
        return isinstance(probe.called(inferred.call.compiled(), *probe.tokens), torch.Tensor)

    return precisions_of(answers)


def _inner(built: Building, table: Table) -> InnerWidth:
    """Return the inner width as a multiple of the model's, or else itself.

    Raises Unclear where it is neither, nor such a multiple that is rounded up.
    """
    one, other = (
        _inner_width(built, table, DISTINCT.but(d_model=width, target_vocabulary=_VOCABULARY))
        for width in (DISTINCT.d_model, 2 * DISTINCT.d_model)
    )
    if one is None or other is None:
        return InnerWidth()
    if one == other and _inner_width(built, table, _of_width(_WIDE)) in (None, one):
        return InnerWidth(width=one)
    ratio = one / DISTINCT.d_model
    between = _inner_width(built, table, _of_width(_BETWEEN))
    if other == 2 * one and between in (None, int(ratio * _BETWEEN)):
        return InnerWidth(ratio)
    tried = {width: _inner_width(built, table, _of_width(width)) for width in ROUNDING_WIDTHS}
    rounded = rounded_inner({width: one for width, one in tried.items() if one is not None})
    if rounded is not None:
        return rounded
    raise Unclear(
        f"the inner width is {one} where the model is {DISTINCT.d_model} wide, and {other} where "
        f"it is {2 * DISTINCT.d_model} wide: say what sets it with --argument d_ff=NAME."
    )


def _of_width(width: int) -> Sizes:
    """Return the sizes of a model of that width, with one head."""
    return DISTINCT.but(d_model=width, heads=1, target_vocabulary=_VOCABULARY)


_BETWEEN = 36
"""A model width that is no multiple of the others."""

_WIDE = 768
"""A model width at which an inner width that is rounded far up is no constant any more."""


def _inner_width(built: Building, table: Table, sizes: Sizes) -> int | None:
    with suppress(KeyError), undisturbed():
        place = locate("encoder.layers.0.feed_forward.inner.weight", table)
        _, packed = place.part or (0, 1)
        shape = dict(built(sizes).named_parameters(remove_duplicate=False))[place.name].shape
        return next((one // packed for one in shape if one > sizes.d_model), None)
    return None


_VOCABULARY = DISTINCT.source_vocabulary

_PAD = 4
"""An id of padding that is not the one of measuring."""


def demand_one_offset(name: str, backend: Backend, choices: Mapping[str, Value]) -> None:
    """Raise Unclear for a model whose first position depends on the id of padding.

    Such code counts the tokens that are no padding, and leaves the position of padding free.
    """
    known = Choices.of(choices)
    if known.position_offset == "none":
        return
    pads = {"source_pad": _PAD, "target_pad": _PAD}
    behind = known.but(position_offset=float(_PAD + 1))
    # A table whose number of rows depends on the id too has no room for those of one offset.
    if not fits_at(backend, known, **pads) and fits_at(backend, behind, **pads):
        raise Unclear(_BEHIND.format(name))


_BEHIND = (
    "The positions of {} begin behind the id of padding, and are counted by its tokens: this spec "
    "has one offset, whatever that id is. Name the classes of its parts, one by one."
)


def demand_free_ids(name: str, built: Building, call: Callable[..., Any]) -> None:
    """Raise Unclear for a model whose numbers depend on the id of padding, without any padding.

    Its positions do. Where a mistake is elsewhere, no formula shows it.
    """
    source, target = (_UNPADDED + torch.arange(length).repeat(2, 1) for length in (6, 4))
    found, numbers = [], dict[str, torch.Tensor]()
    for pad in (_PAD, _PAD + 1):
        sizes = DISTINCT.but(source_pad=pad, target_pad=pad, target_vocabulary=_VOCABULARY)
        try:
            probe = probe_of(built, sizes)
        except Exception:  # code that a user wrote may raise anything
            return
        # A table that starts with zeros in the row of padding may give the logits too.
        with torch.no_grad():
            for own, parameter in probe.model.named_parameters():
                if numbers.setdefault(own, parameter).shape == parameter.shape:
                    parameter.copy_(numbers[own])
        found.append(probe.output(call, source, target))
    one, other = found
    if one is not None and other is not None and not torch.allclose(one, other):
        raise Unclear(_BEHIND.format(name))


_UNPADDED = 7
"""The first of ids that are no padding."""


_SIDES = ("encoder", "decoder")
_HELD = "{} is held and not called: a norm is missing behind the {}"
_USED = (
    "{} was read as a whole model, and {}, which is the norm behind the {} by its name, is not "
    "called as a module, though its output depends on it: write the map by hand, in a backend as "
    "docs/how-to/add-an-implementation.md shows."
)


def with_idle_norms(
    built: Building, found: FoundTable, call: Callable[..., Any], name: str
) -> FoundTable:
    """Return `found` with a remark on each norm that nothing depends on.

    Unclear for one that is used in another way than by a call: where it acts is not known.
    """
    order = found.observed.run.order if found.observed is not None else []
    said = []
    # Where lengths have to be equal, no call was watched to its end.
    for side, own in () if built.equal else _final_norms(found):
        path = own.rpartition(".")[0]
        if not path or path in order:
            continue
        if _has_effect(built, own, call):
            raise Unclear(_USED.format(name, path, side))
        said.append(_HELD.format(path, side))
    return replace(found, remarks=(*found.remarks, *said))


def _final_norms(found: FoundTable) -> Iterator[tuple[str, str]]:
    """Yield the side of each norm behind a stack, and the name of its weight."""
    for side in _SIDES:
        if f"{side}.norm.gain" in found.table:
            yield side, locate(f"{side}.norm.gain", found.table).name


def _has_effect(built: Building, own: str, call: Callable[..., Any]) -> bool:
    """Say whether the output depends on the parameter `own`, or cannot be had."""
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    before = probe.called(call, *probe.tokens)
    weight = probe.model.get_parameter(own)
    weight.data += torch.linspace(-1, 2, weight.numel(), dtype=weight.dtype).view_as(weight)
    after = probe.called(call, *probe.tokens)
    if not (isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor)):
        return True
    return not torch.equal(before, after)
