"""Programs of a language model with a cache: which tokens come in which chunk, after which one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import fits
from attentest.suite.test_cache.cases import calls_of
from attentest.suite.test_language_model.cases import LONGEST, Text, matches_text, model_sizes
from attentest.suite.test_model.cases import require_hiding
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, Sizes
from attentest_spec.contract import Counted, Input
from attentest_spec.setting import Array

COMPONENT = "cached_language_model"


@dataclass(frozen=True)
class Continued(Text):
    """One call of the model with a cache: the columns of a text are given in `chunks`.

    `chunks`, `after` and `origin` are those of the contract, with lists in the place of arrays.
    """

    chunks: Sequence[int] = ()
    after: Sequence[int] = ()
    origin: Sequence[Sequence[int]] = ()

    @property
    def target(self) -> Array:
        """The tokens (B, T) of all chunks."""
        return self.tokens

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in the order of the call; by default every chunk continues the last one."""
        calls = calls_of(len(self.tokens), self.chunks, self.after, self.origin)
        return self.tokens, self.mask, self.positions, *calls

    def row(self, number: int) -> Self:
        """Return the call of one row alone."""
        one = slice(number, number + 1)
        return self.but(
            tokens=self.tokens[one],
            mask=None if self.mask is None else self.mask[one],
            positions=None if self.positions is None else self.positions[one],
        )


def cached_sizes(subject: Subject, draw: Draw, **fixed: Any) -> Sizes:
    """Draw the sizes of a model of two blocks where it can have them, and several heads.

    Absent where masked keys have some weight: earlier rows depend on later ones then.
    """
    require_hiding(subject)
    chosen: dict[str, Any] = {"layers": min(2, subject.limits.layers or 2)}
    if subject.choices.key_heads != "fewer":
        chosen["heads"] = draw.several()
    return with_steady_angles(subject, model_sizes(subject, draw, **{**chosen, **fixed}))


def with_steady_angles(subject: Subject, sizes: Sizes) -> Sizes:
    """Return sizes under which the angles of a text do not depend on its length."""
    if subject.choices.rotary_scaling == "dynamic-ntk":
        return sizes.but(trained_length=max(LONGEST, sizes.max_length))
    return sizes


def build(subject: Subject, draw: Draw, sizes: Sizes, *, precision: str = "") -> Probe:
    """Build the component at `sizes` and load drawn parameters."""
    parameters = draw.parameters(COMPONENT, sizes, precision=precision)
    return subject.part(COMPONENT, sizes, parameters=parameters, precision=precision)


def draw_continued(
    draw: Draw, probe: Probe, chunks: Sequence[int], *, rows: int = 0, **given: Any
) -> Continued:
    """Draw the tokens of a call; the number of rows is never that of the heads."""
    count = rows or next(one for one in (3, 2, 4) if one != probe.sizes.heads)
    shape = count, sum(chunks)
    tokens = draw.rng.integers(0, probe.sizes.target_vocabulary, size=shape)
    return Continued(probe, tokens, chunks=chunks, **given)


def drawn(
    subject: Subject, draw: Draw, chunks: Sequence[int], *, rows: int = 0, **fixed: Any
) -> Continued:
    """Draw a model, and a call of it without padding and positions."""
    probe = build(subject, draw, cached_sizes(subject, draw, **fixed))
    return draw_continued(draw, probe, chunks, rows=rows)


def from_starts(draw: Draw, case: Continued, kind: str) -> Array:
    """Return positions (B, T) that rise by one, from a start of every row, or one of all."""
    rows, length = case.tokens.shape
    room = case.probe.sizes.max_length - length
    if room < 1:
        raise Absent(f"{case.probe.subject.name} has no positions to spare")
    starts = np.full(rows, draw.integer(1, room))
    if kind == "per-sample":
        starts = draw.rng.permutation(max(room + 1, rows))[:rows].clip(max=room)
    return np.ascontiguousarray(starts[:, None] + np.arange(length))


def matches_reference(case: Continued, what: str = "output") -> Array:
    """Demand the output without a cache at the real tokens, and return that of the backend.

    Where positions after padding may be counted in two ways and none is declared, either passes.
    """
    probe, subject = case.probe, case.probe.subject
    actual = case.output()
    if "padded_positions" not in subject.declared and case.mask is not None:
        for option in CHOICES["padded_positions"].names:
            choices = subject.choices.but(padded_positions=option)
            if fits(probe, *case.inputs, actual=actual, choices=choices, rows=case.real):
                return actual
    return matches_text(case, actual, what)


def cost_of_last(case: Continued) -> int:
    """Return the operations of the last chunk, as those that the call has more with it."""
    *before, last = case.chunks
    shorter = case.but(chunks=before, tokens=case.tokens[:, :-last])
    return _cost(case) - _cost(shorter)


def _cost(case: Continued) -> int:
    if not isinstance(case.probe.part, Counted):
        raise Absent(f"{case.probe.subject.name} does not count its operations")
    return case.probe.do("counting its operations", partial(_operations, case))


def _operations(case: Continued, part: Any) -> int:
    return int(part.flops(case.inputs))
