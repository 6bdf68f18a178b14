"""Calls of rotary positions, and assertions of their chapter about them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest, rounding, turned_size
from attentest.testing.assertions import finite, holds, near, same_shape
from attentest.testing.draw import Draw
from attentest.testing.rotary_widths import WIDTHS, served_widths
from attentest_spec import Choices, Sizes
from attentest_spec.contract import POSITION_KINDS
from attentest_spec.rotary import columns, magnitude
from attentest_spec.setting import Array, Floats, Tokens

GIVEN = POSITION_KINDS[1:]
"""The kinds of positions that are not absent."""

LENGTHS = (2048, 64, 640)
"""The trained lengths that are drawn: with them all bands of frequencies have pairs."""


@dataclass(frozen=True)
class Turn:
    """One call: the part, x (B, H, L, E), and positions (B, L) or none."""

    probe: Probe
    x: Floats
    positions: Tokens | None = None

    @property
    def choices(self) -> Choices:
        """The choices that are judged by."""
        return self.probe.subject.choices

    def output(self) -> Floats:
        """Return what the backend computes, (B, H, L, E)."""
        output = self.probe.output(self.x, self.positions)
        same_shape(output, self.x.shape)
        return as_floats(output)

    def expected(self, choices: Choices | None = None) -> Floats:
        """Return what the reference computes, under other choices too, (B, H, L, E)."""
        return as_floats(self.probe.expected(self.x, self.positions, choices=choices).output)

    def places(self) -> Annotated[Array, "B L"]:
        """Return the positions of all tokens."""
        batch, _, length, _ = self.x.shape
        first = np.broadcast_to(np.arange(length), (batch, length))
        return first if self.positions is None else self.positions

    def size(self, choices: Choices | None = None) -> Annotated[Floats, "B L"]:
        """Return the magnitude of what is rounded at every token, in units of the precision."""
        chosen = choices or self.choices
        factor = magnitude(self.probe.sizes, chosen)
        return largest(self.x) * turned_size(self.probe.precision, chosen, self.places(), factor)

    def share(self, actual: Annotated[Floats, "B H L E"], choices: Choices) -> float:
        """Return the difference from the reference under `choices`, as a share of the tolerance."""
        difference = np.abs(actual - self.expected(choices)).max(axis=(1, 3))
        share = difference / self.size(choices) / rounding(self.probe.precision, 1)
        return float(np.where(np.isnan(share), np.inf, share).max())


def draw_turn(
    subject: Subject,
    draw: Draw,
    *,
    lengths: tuple[int, int] = (2, 7),
    kinds: Sequence[str] = POSITION_KINDS,
    widths: Sequence[int] = WIDTHS,
    precision: str = "",
    most: int = 40,
    batch: int = 0,
    heads: int = 0,
    trained: Sequence[int] = (),
) -> Turn:
    """Draw a call; `most` is the longest that the part is built for, above all positions.

    Positions are of one of the `kinds` that the backend supports, absent where it supports none.
    Batch, heads and length differ where they are drawn.
    """
    longest = min(most, subject.limits.length or most)
    length = min(draw.length(*lengths), longest)
    count = heads or draw.heads()
    sequences = batch or draw.choose([one for one in (3, 2, 1, 5) if one not in (count, length)])
    width = draw.choose(served_widths(subject.choices, widths)[:4])
    kind = draw.choose(supported_kinds(subject, kinds))
    sizes = draw_sizes(subject, draw, width, count, longest, trained)
    probe = subject.part("rotary", sizes, precision=precision)
    x = draw.floats(sequences, count, length, width, precision=precision)
    return Turn(probe, x, draw_positions(draw, kind, sequences, length, longest))


def draw_sizes(
    subject: Subject, draw: Draw, width: int, heads: int, most: int, trained: Sequence[int] = ()
) -> Sizes:
    """Draw sizes for heads of `width` columns; dynamic scaling is trained with short texts."""
    dynamic = subject.choices.rotary_scaling == "dynamic-ntk"
    return Sizes(
        d_model=width * heads,
        heads=heads,
        max_length=most,
        rotary_factor=draw.choose((4.0, 2.0, 8.0)),
        trained_length=draw.choose(trained or ((3, 8) if dynamic else LENGTHS)),
    )


def supported_kinds(subject: Subject, kinds: Sequence[str]) -> list[str]:
    """Return those of the `kinds` of positions that the backend takes; absent where it has none."""
    found = [one for one in kinds if one in subject.limits.positions]
    if not found:
        raise Absent(f"{subject.name} takes no positions of the kind {' or '.join(kinds)}")
    return found


def draw_positions(
    draw: Draw, kind: str, batch: int, length: int, most: int
) -> Annotated[Tokens, "B L"] | None:
    """Draw positions (B, L) of one kind, all below `most`."""
    if kind == "none":
        return None
    starts = draw.rng.permutation(most - length + 1)[:batch]
    if kind == "per-sample" and len(starts) == batch:
        found = starts[:, None] + np.arange(length)
        found[0] = draw.rng.permutation(found[0])
    elif kind == "per-sample":  # there are hardly more positions than tokens
        found = np.stack([draw.rng.permutation(most)[:length] for _ in range(batch)])
    elif kind == "shared":
        found = np.broadcast_to(draw.rng.permutation(most)[:length], (batch, length))
    else:
        found = np.broadcast_to(starts[0] + np.arange(length), (batch, length))
    return np.ascontiguousarray(found.astype(np.int64))


def same_turns(
    case: Turn,
    actual: Annotated[Floats, "B H L E"],
    wanted: Annotated[Floats, "B H L E"],
    *,
    what: str = "turned x",
    times: float = 1.0,
) -> None:
    """Demand equal rows, each up to the rounding at its position, some `times`."""
    same_shape(actual, wanted.shape, what=what)
    size = np.broadcast_to(times * case.size(), (len(actual), actual.shape[2]))
    difference = np.abs(actual - wanted).max(axis=(1, 3)) / size
    sample, token = np.unravel_index(
        int(np.argmax(np.where(np.isnan(difference), np.inf, difference))), size.shape
    )
    near(
        case.probe.subject,
        actual[sample, :, token],
        wanted[sample, :, token],
        size=float(size[sample, token]),
        precision=case.probe.precision,
        what=f"{what} of sequence {sample} at position {case.places()[sample, token]}",
    )


def matches_turn(case: Turn, actual: Annotated[Floats, "B H L E"] | None = None) -> Floats:
    """Demand that x is turned as declared, and return what the backend computes."""
    found = case.output() if actual is None else actual
    same_turns(case, found, case.expected())
    return found


def moves_as_declared(case: Turn, actual: Annotated[Floats, "B H L E"]) -> None:
    """Demand that the furthest token is moved by at least half of what is declared."""
    sample, token = np.unravel_index(int(case.places().argmax()), case.places().shape)
    found, declared = (
        largest((one - case.x)[sample, :, token]) for one in (actual, case.expected())
    )
    finite(actual, what="turned x")
    holds(
        found >= declared / 2,
        f"At position {case.places()[sample, token]} x is moved by {found:.3g}, and by "
        f"{declared:.3g} as declared.",
        actual=actual,
    )


def shows_declared(case: Turn, choice: str, others: Sequence[str | float]) -> None:
    """Demand the numbers of the declared option of `choice`, and of none of the `others`.

    Absent where they cannot be distinguished for any of them.
    """
    actual, declared = case.output(), case.choices
    tried = [declared.but(**{choice: one}) for one in others if one != declared[choice]]
    differing = [one for one in tried if case.share(case.expected(), one) > 2]
    for one in differing:
        holds(
            case.share(actual, one) > 1 or case.share(actual, declared) <= 1,
            f"{choice} is declared as {declared[choice]}; the numbers show {one[choice]}.",
            actual=actual,
        )
    matches_turn(case, actual)
    if not differing:
        raise Absent(f"{choice}: the numbers show no other option")


def turned_columns(case: Turn) -> Annotated[Array, "N"]:
    """Return the numbers of the columns that are turned."""
    return np.concatenate(columns(case.choices, case.x.shape[-1]))


def of_one_vector(case: Turn) -> Turn:
    """Return the call with one vector for all tokens of every head of every sequence."""
    return replace(case, x=np.broadcast_to(case.x[:1, :1, :1], case.x.shape).copy())
