"""Limits of code, found by its signature and by probing calls."""

import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn

from attentest.analysis.identify.rounded_heads import rounds_heads
from attentest.analysis.identify.structure import asking
from attentest.analysis.undeclared import effective_limits, frozen_rows, marks_with_zeros
from attentest.harness.subject import Subject
from attentest.results.text import summary, summary_with_place
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.assumptions.lengths import follows_length, longest
from attentest.targets.adapt.assumptions.randomness import is_random_in_training
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import STACKS
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.parameters.degenerate import with_numbers
from attentest.targets.adapt.parameters.inner_widths import (
    InnerWidth,
    fixed_inner,
    sets_inner_width,
    shared_inner,
)
from attentest.targets.adapt.probing import SIZES, Probe, undisturbed
from attentest.targets.adapt.reading import Uncallable, Unclear, own_recipe
from attentest.targets.constants.layers import demand_layers
from attentest.targets.constants.widths import has_constant_width
from attentest.targets.kernels import demand_runnable
from attentest.targets.precisions import precisions_of
from attentest.targets.signatures import constructor_arguments
from attentest_spec import COMPONENTS, Backend, Choices, Limits, Sizes, Table
from attentest_spec.components import inside
from attentest_spec.contract import MASK_KINDS
from attentest_spec.torch import DTYPES
from attentest_spec.torch.values import cast_real


def built(code: Code, dtype: torch.dtype) -> Any:
    """Return `code` built at the sizes of a probe; Unclear where it cannot be."""
    if inspect.isabstract(code.thing):
        raise Unclear(_abstract(code))
    try:
        thing = code.build(SIZES)
    except Exception as failure:  # code that a user wrote may raise anything
        demand_runnable(code.name, summary(failure), code.thing)
        why = summary_with_place(failure, 300)
        raise Uncallable(
            f"{code.name} could not be built for probing ({'; '.join(code.said)}): {why}.",
            f"An argument may have been taken for another size. What needs more is built in a file "
            f"of your own: {own_recipe(code.component, code.name)}.",
        ) from failure
    return with_numbers(cast_real(thing, dtype).eval()) if isinstance(thing, nn.Module) else thing


def _abstract(code: Code) -> str:
    """Return the question about an abstract class, with the classes of its file that are none."""
    home = vars(sys.modules.get(code.thing.__module__, code.thing)).values()
    below = (one for one in home if inspect.isclass(one) and issubclass(one, code.thing))
    names = sorted({one.__name__ for one in below if not inspect.isabstract(one)})
    missing = " and ".join(sorted(code.thing.__abstractmethods__))
    other = f", such as {' or '.join(names)}" if names else ""
    return f"{code.name} is abstract, without code for {missing}: name a class made of it{other}."


class Narrow(Unclear):
    """Code that cannot be built at the width of the smallest examples; its text is the question."""


def demand_least_width(build: Callable[[Sizes], Any], sizes: Sizes, name: str, parts: str) -> None:
    """Raise Narrow where `build` raises at a width of 2; `parts` says what else can be named."""
    try:
        with undisturbed():
            build(sizes.but(d_model=2, heads=1))
    except Exception as failure:  # code that a user wrote may raise anything
        raise Narrow(
            f"{name} cannot be built at a width of 2, as examples need it "
            f"({summary(failure, 120)}): name {parts}."
        ) from failure


def least_width(build: Callable[[Sizes], Any], sizes: Sizes, name: str, parts: str) -> int:
    """Return the smallest even width at which `build` does not raise, 1 for that of examples.

    Raises Narrow, as :func:`demand_least_width`, where that is more than 8: a table of sines may
    divide by the number of its frequencies less one.
    """
    try:
        demand_least_width(build, sizes, name, parts)
    except Narrow:
        for width in (4, 6, 8):
            with suppress(Exception), undisturbed():  # code that a user wrote may raise anything
                build(sizes.but(d_model=width, heads=1))
                return width
        raise
    return 1


def limits_of(
    code: Code, probe: Probe, adapter: Adapter, table: Table, *, several: bool = False
) -> Limits:
    """Return what `code` takes; `probe` holds it built, `adapter` calls it, `table` maps it.

    `several` says that `table` does not fit what is built with one head.
    """
    known = code.known
    one_head = _has_heads(code) and "heads" not in known
    is_set = sets_inner_width(code, probe, table)
    inner = InnerWidth() if is_set else fixed_inner(code, probe, table)
    made = code.construction
    has_one_layer = made is not None and made.has_one_layer
    if code.component in STACKS and "layers" not in known and not has_one_layer:
        demand_layers(code.build, code.name)
    return Limits(
        layers=1 if has_one_layer else None,
        heads=1 if one_head else None,
        fewest_heads=2 if several else 1,
        precisions=_precisions(code, adapter),
        masks=_kinds(adapter),
        memory_masks=_memory_kinds(adapter),
        dropout="dropout" in known and _same_names(code, probe),
        cross=not adapter.arguments.joined,
        inner=inner.ratio,
        inner_width=inner.width,
        inner_multiple=inner.multiple,
        shared_inner=None if "shared_inner" in known else shared_inner(probe, table),
        length=None
        if "max_length" in known and follows_length(code, probe, adapter)
        else longest(code, probe, adapter, partial(any_masks, adapter)),
        own_pads=code.inner is not None or not _of_source_alone("pad", known),
        own_vocabularies=code.inner is not None or not _of_source_alone("vocabulary", known),
        least_head_width=_least_head_width(code),
        odd_width=not has_constant_width(code.constants.values())
        and (
            not (_has_heads(code) or _has_settings(code)) or _takes_odd_width(code, probe, adapter)
        ),
        positions=("none",),  # attention is given none, and counts them from 0
        right_padded=("mask",) if takes_lengths(adapter) else (),
    )


def _least_head_width(code: Code) -> int:
    """Return the smallest even width of a head at which `code` is built, 1 for that of examples.

    Rotary positions may divide by the number of their frequencies less one.
    """
    if not (_has_heads(code) and {"d_model", "heads"} <= code.known):
        return 1
    for width in (2, 4, 6, 8):
        with suppress(Exception), undisturbed():  # code that a user wrote may raise anything
            code.build(SIZES.but(d_model=width * SIZES.heads))
            return 1 if width == 2 else width
    return 1


def _has_heads(code: Code) -> bool:
    """Say whether `code` builds attention with heads."""
    return code.is_module and "multi_head_attention" in inside(code.component)


def _has_settings(code: Code) -> bool:
    """Say whether `code` is built with an object of settings, which may refuse sizes of others."""
    fillings = code.construction.fillings if code.construction else {}
    return any(isinstance(one.value, Construction) for one in fillings.values())


def takes_lengths(adapter: Adapter) -> bool:
    """Say whether a mask of `adapter` is a number of keys."""
    return any(one.meaning == "lengths" for one in adapter.styles.values())


def is_random_without_dropout(probe: Probe, adapter: Adapter) -> bool:
    """Say whether what `probe` holds gives other outputs at each call in training mode."""
    given = {**probe.given(adapter, keys=5), **any_masks(adapter)}
    return isinstance(probe.built, nn.Module) and is_random_in_training(
        probe.built, lambda: probe.called(adapter, given)
    )


def ignores_dropout(code: Code, probe: Probe, adapter: Adapter) -> bool:
    """Say whether a class with an argument for dropout gives the same outputs in training.

    The fields of a configuration are for all parts of a model, and say nothing of one.
    """
    if not any("drop" in squashed(own) for own in constructor_arguments(code.thing)):
        return False
    try:
        with undisturbed():
            dropping = with_numbers(code.build(SIZES.but(dropout=0.5)).to(probe.dtype))
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return False
    return not is_random_without_dropout(replace(probe, built=dropping), adapter)


def _same_names(code: Code, probe: Probe) -> bool:
    """Say whether the parameters of `code` have the same names with dropout and without.

    They do not where a dropout layer of rate 0 is left out of a numbered sequence.
    """
    try:
        with undisturbed():
            dropping = code.build(SIZES.but(dropout=0.5))
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return True
    return _names(dropping) == _names(probe.built)


def _names(thing: Any) -> list[str]:
    return [name for name, _ in thing.named_parameters()] if isinstance(thing, nn.Module) else []


def limits_measured(backend: Backend, choices: Choices, *, strict: bool) -> Limits:
    """Return the limits of a backend that was read, with those that its answers show.

    An embedding may leave out one row of its gradient: that of the pad id, which is fixed where it
    does not follow the sizes. Heads of a rounded width are no limit where the reading is `strict`.
    """
    limits = effective_limits(backend, choices)
    if "multi_head_attention" in backend.components:
        subject = Subject(
            asking(backend, choices), choices=choices, limits=limits, precision=limits.finest
        )
        return replace(limits, rounded_heads=not strict and rounds_heads(subject))
    if "embedding" not in backend.components:
        return limits
    subject = Subject(backend, choices=choices, limits=limits, precision=limits.finest)
    limits = replace(limits, negative_ids=marks_with_zeros(subject, Sizes()))
    rows = [frozen_rows(subject, Sizes(source_pad=pad, target_pad=pad)) for pad in (3, 7)]
    if rows == [(3,), (7,)]:
        return replace(limits, trained_pad=False)
    fixed = rows[0] == rows[1] and len(rows[0]) == 1
    return replace(limits, trained_pad=False, pad=rows[0][0]) if fixed else limits


UNANSWERED = "it is not judged in {}: a call gives no answer there, or rounds to another precision"


def said_of(limits: Limits, *, dropout: bool = False) -> list[str]:
    """Return what is not judged, in sentences; `dropout` says that an argument sets its rate."""
    missing = [name for name in DTYPES if name not in limits.precisions]
    said = [UNANSWERED.format(", ".join(missing))] if missing else []
    if limits.heads == 1:
        said.append("no argument says how many heads: it is judged with one")
    if limits.one_key_head:
        said.append("its heads share one head of keys and values, whatever their number")
    if "mask" in limits.right_padded:
        said.append("its mask is a number of keys: it is judged with masks that hide the last ones")
    if limits.length is not None:
        said.append(f"its table has {limits.length} positions, and longer inputs are not judged")
    if limits.least_width > 1:
        said.append(f"a width below {limits.least_width} is refused: it is judged at wider ones")
    if limits.least_head_width > 1:
        least = limits.least_head_width
        said.append(f"heads less than {least} wide are refused: it is judged with wider ones")
    if not limits.odd_width:
        said.append(
            "an odd model width is refused, or the width is a constant of its code: it is judged "
            "at even ones"
        )
    if not limits.own_vocabularies:
        said.append("source and target have one vocabulary")
    if not limits.own_pads:
        said.append("source and target have one pad id")
    if dropout and not limits.dropout and not limits.fixed_dropout:
        said.append(
            "its parameters have other names where it has dropout: it is judged without dropout"
        )
    if limits.pad is not None:
        said.append(f"its pad id is always {limits.pad}")
    if not limits.trained_pad:
        said.append(
            "the row of the pad id gets no gradient, as with padding_idx; if it is to be trained, "
            "this is a mistake"
        )
    if limits.negative_ids:
        said.append("a negative id gives zeros, as a marker does: negative ids are not judged")
    if limits.rounded_heads:
        said.append(
            "a width that the heads do not divide is rounded down for each of them, and no "
            "column is left out: if it is to be refused, this is a mistake"
        )
    if limits.inner is not None:
        rounded = f", rounded up to a multiple of {limits.inner_multiple}"
        said.append(
            f"its inner layer is {limits.inner:.4g} times as wide as the model"
            f"{rounded if limits.inner_multiple > 1 else ''}"
        )
    if limits.inner_width is not None:
        said.append(f"its inner layer is always {limits.inner_width} wide")
    return said


ODD = 5 * SIZES.heads
"""An odd model width that the heads of a probe divide."""


def _takes_odd_width(code: Code, probe: Probe, adapter: Adapter) -> bool:
    """Say whether `code` is built at an odd width and answers there, if it does at that of `probe`.

    A table of positions inside may be built at an odd width and have an even one.
    """
    try:
        with undisturbed():
            thing = code.build(SIZES.but(d_model=ODD))
    except Exception:  # code that a user wrote may raise anything
        return False
    odd = replace(probe, built=cast_real(thing, probe.dtype).eval())
    given = {**probe.given(adapter, keys=5), **any_masks(adapter)}
    refused = isinstance(
        odd.called(adapter, {n: _at_odd_width(one) for n, one in given.items()}), str
    )
    return not refused or isinstance(probe.called(adapter, given), str)


def _at_odd_width(value: Any) -> Any:
    """Return an input of a probe with as many columns as an odd width; masks as they are."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return value
    return torch.cat([value, value], dim=-1)[..., :ODD]


def _of_source_alone(what: str, known: Collection[str]) -> bool:
    """Say whether code takes the source's pad id or vocabulary and none of the target."""
    return f"source_{what}" in known and f"target_{what}" not in known


def _kinds(adapter: Adapter) -> tuple[str, ...]:
    """Return the kinds of mask that are taken by what attends to itself, or to keys of its own."""
    if adapter.causal:
        return ("causal",)
    roles = _roles(adapter)
    return _kinds_of(adapter, "target_mask" if "target_mask" in roles else "mask")


def _memory_kinds(adapter: Adapter) -> tuple[str, ...] | None:
    """Return the kinds of the memory's mask, None where they are those of the other."""
    if "source_mask" not in _roles(adapter):
        return None
    kinds = _kinds_of(adapter, "source_mask")
    return None if kinds == _kinds(adapter) else kinds


def _kinds_of(adapter: Adapter, role: str) -> tuple[str, ...]:
    style = adapter.styles.get(role)
    kinds = set(style.kinds) if style else {"none"}
    kinds |= {"padding"} if role == "mask" and "padding" in adapter.styles else set()
    return tuple(kind for kind in MASK_KINDS if kind in kinds)


def _roles(adapter: Adapter) -> list[str]:
    return [role for role in COMPONENTS[adapter.component].inputs if role in MASKS]


def _precisions(code: Code, adapter: Adapter) -> tuple[str, ...]:
    """Return the precisions in which a call answers at all; wrong answers are for the clauses."""

    def answers(name: str) -> bool:
        trial = Probe(built(code, DTYPES[name]), DTYPES[name])
        given = {**trial.given(adapter, keys=5), **any_masks(adapter)}
        return not isinstance(trial.called(adapter, given), str)

    return precisions_of(answers)


def any_masks(adapter: Adapter, length: int = 5) -> Mapping[str, torch.Tensor]:
    """Return masks for `length` queries and keys that `adapter` takes, none where it takes none."""
    memory = _memory_kinds(adapter)
    kinds = {role: _kinds(adapter) for role in _roles(adapter)}
    kinds |= {"source_mask": memory} if memory is not None else {}
    return {role: _any_mask(one, length) for role, one in kinds.items() if set(one) - {"none"}}


def _any_mask(kinds: Collection[str], length: int) -> torch.Tensor:
    causal = torch.ones((1, 1, length, length), dtype=torch.bool).tril()
    last = max(length - 2, 0)
    return causal if "padding" not in kinds else causal[:, :, last : last + 1].repeat(2, 1, 1, 1)
