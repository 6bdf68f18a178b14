"""Positions that a call takes in addition to tokens: how they are counted, and the fit of that."""

from dataclasses import replace

from torch import nn

from attentest.targets.adapt.reading import Unclear
from attentest.targets.models.arguments import Arguments, Positions
from attentest.targets.models.calling import Call
from attentest.targets.models.probing import Probe

_GIVEN = (
    "assumed that {} are the positions of the tokens, counted from {} and 0 for padding, as the "
    "numbers show"
)
_UNKNOWN = (
    "{} takes {} in addition to its tokens, which are positions by their names, and counted from "
    "{} they do not give the numbers of a design: what calls it may count them otherwise. Make "
    "them in the call, or name the classes of its parts, one by one."
)


def with_counted_positions(probe: Probe, call: Call) -> Call:
    """Return `call` with positions from 1 where tables have a row more than the greatest length.

    They are counted from 0 otherwise.
    """
    read = call.arguments
    if not read.takes_positions:
        return call
    rows = probe.sizes.max_length + 1
    tables = [one.weight for one in probe.model.modules() if isinstance(one, nn.Embedding)]
    start = int(any(rows in one.shape for one in (*tables, *probe.model.buffers())))
    fixed = {
        own: Positions(one.side, start) if isinstance(one, Positions) else one
        for own, one in read.fixed.items()
    }
    return replace(call, arguments=replace(read, fixed=fixed))


def assumed_of_positions(read: Arguments) -> tuple[str, ...]:
    """Return the assumption on positions that a call is given, none where it is given none."""
    names, start = _taken(read)
    return (_GIVEN.format(names, start),) if names else ()


def demand_fit_of_positions(read: Arguments, name: str, *, fits: bool) -> None:
    """Raise Unclear where a call is given positions, and its numbers are no design's."""
    names, start = _taken(read)
    if names and not fits:
        raise Unclear(_UNKNOWN.format(name, names, start))


def _taken(read: Arguments) -> tuple[str, int]:
    held = {own: one for own, one in read.fixed.items() if isinstance(one, Positions)}
    return " and ".join(held), next((one.start for one in held.values()), 0)
