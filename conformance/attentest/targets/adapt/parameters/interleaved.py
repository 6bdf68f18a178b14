"""Attention whose heads are interleaved: channel c of the width belongs to head c mod H."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.parameters.behaviour import observe
from attentest.targets.adapt.parameters.layers import Part
from attentest.targets.adapt.parameters.leaves import interleaved_tables
from attentest.targets.adapt.parameters.settled import settled
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import fitting
from attentest_spec import Choices, Sizes
from attentest_spec.mapping import Table

HEADS = ((18, 3), (8, 4), (24, 2))
"""Other widths and numbers of heads, with heads that are wider and narrower than they are many."""

SENTENCE = (
    "assumed that the heads are interleaved (channel c of the width belongs to head c mod H): if "
    "you meant slices of the width, this is a mistake, and --strict asks"
)
QUESTION = (
    "{} computes {} with interleaved heads: channel c of the width belongs to head c mod H, for "
    "query, key, value and what the output projection reads. In the formula heads are slices of "
    "the width. Without --strict (in Python: strict=True) it is judged with this order, as an "
    "assumption."
)


def interleaved_parts(parts: Sequence[Part], sizes: Sizes) -> list[Part]:
    """Return `parts` with the heads of every attention interleaved; none where that cannot be."""
    found = list(_interleaved(parts, sizes))
    attends = any(part.component == "multi_head_attention" for part in parts)
    return found if attends and all(part.tables for part in found) else []


def _interleaved(parts: Sequence[Part], sizes: Sizes) -> Iterator[Part]:
    for part in parts:
        if part.component == "multi_head_attention":
            tables = interleaved_tables(list(part.units), sizes)
            yield replace(part, tables=tables, strange=())
        else:
            yield part


def holds_at_other_sizes(
    build: Callable[[Sizes], nn.Module],
    component: str,
    call: Callable[..., Any],
    table: Table,
    sizes: Sizes,
    seconds: float,
) -> bool:
    """Say whether the formula gives the numbers of other widths and numbers of heads, too."""
    clock = Clock(seconds)
    return all(_holds(build, component, call, table, one, clock) for one in other_sizes(sizes))


def other_sizes(sizes: Sizes) -> list[Sizes]:
    """Return `sizes` with other widths and numbers of heads."""
    return [_resized(sizes, width, heads) for width, heads in HEADS]


def _resized(sizes: Sizes, width: int, heads: int) -> Sizes:
    """Return `sizes` of another width; an inner width that is a multiple of it stays one."""
    ratio, rest = divmod(sizes.d_ff, sizes.d_model)
    return sizes.but(d_model=width, heads=heads, d_ff=sizes.d_ff if rest else ratio * width)


def _holds(
    build: Callable[[Sizes], nn.Module],
    component: str,
    call: Callable[..., Any],
    table: Table,
    sizes: Sizes,
    clock: Clock,
) -> bool:
    try:
        with torch.random.fork_rng(devices=[]):
            module = build(sizes)
        run = observe(module, call, component, sizes)
        choices = Choices.of(settled(component, table, run.own, sizes))
    except Exception:  # code that a user wrote may raise anything
        return False
    return bool(fitting(component, [table], run.samples, run, sizes, choices, clock))
