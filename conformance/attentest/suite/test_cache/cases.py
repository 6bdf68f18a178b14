"""Programs of decoding with a cache: which tokens come in which chunk, and after which one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import fits
from attentest.suite.test_model.cases import model_sizes, require_hiding
from attentest.testing.assertions import matches, same_shape
from attentest.testing.draw import Draw
from attentest_spec import CHOICES, Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array

Inputs = tuple[Array, Array, Array, Array, Array]


class Chunked(Protocol):
    """One call of a component that is given tokens (B, T) in chunks."""

    @property
    def target(self) -> Array:
        """The tokens (B, T) of all chunks."""

    @property
    def inputs(self) -> tuple[Input, ...]:
        """The inputs in the order of the call."""


@dataclass(frozen=True)
class Program:
    """One call: source (B, S), target (B, T), and what is done with the columns of the target.

    `chunks`, `after` and `origin` are those of the contract, with lists in the place of arrays.
    """

    source: Array
    target: Array
    chunks: Sequence[int]
    after: Sequence[int] = ()
    origin: Sequence[Sequence[int]] = ()

    @property
    def inputs(self) -> Inputs:
        """The inputs in the order of the call; by default every chunk continues the last one."""
        calls = calls_of(len(self.target), self.chunks, self.after, self.origin)
        return self.source, self.target, *calls

    def but(self, **changes: Any) -> "Program":
        """Return the program with other tokens or chunks."""
        return replace(self, **changes)

    def row(self, number: int) -> "Program":
        """Return the program of one row alone."""
        one = slice(number, number + 1)
        return self.but(source=self.source[one], target=self.target[one])


def calls_of(
    rows: int, chunks: Sequence[int], after: Sequence[int], origin: Sequence[Sequence[int]]
) -> tuple[Array, Array, Array]:
    """Return the program as arrays; by default every chunk continues the last one, row by row."""
    earlier = after or range(-1, len(chunks) - 1)
    order = origin or [range(rows)] * len(chunks)
    return np.array(chunks), np.array(earlier), np.array(order)


def draw_sizes(subject: Subject, draw: Draw, **fixed: Any) -> Sizes:
    """Draw the sizes of a model of two layers where it can have them, and several heads.

    Absent where masked keys have some weight: earlier rows depend on later ones then.
    """
    require_hiding(subject)
    few = {"layers": min(2, subject.limits.layers or 2), "heads": draw.several()}
    return model_sizes(subject, draw, **few | fixed)


def build(subject: Subject, draw: Draw, sizes: Sizes, *, precision: str = "") -> Probe:
    """Build the component at `sizes` and load drawn parameters."""
    parameters = draw.parameters("cached_decoding", sizes, precision=precision)
    return subject.part("cached_decoding", sizes, parameters=parameters, precision=precision)


def draw_program(
    draw: Draw, sizes: Sizes, chunks: Sequence[int], *, rows: int = 0, words: int = 0
) -> Program:
    """Draw `rows` sources of `words` tokens, some padding, and targets without padding.

    The number of rows is never that of the heads: what exchanges the two would not show.
    """
    count = rows or next(one for one in (3, 2, 4) if one != sizes.heads)
    return Program(
        draw.source(count, words or draw.length(2, 6), sizes),
        draw.tokens(count, sum(chunks), sizes.target_vocabulary, sizes.target_pad),
        chunks,
    )


def draw_beams(draw: Draw, sizes: Sizes, chunks: Sequence[int]) -> Program:
    """Draw a program of five rows: one source for rows 0 to 2, and another one for 3 and 4.

    Their first tokens are different ones.
    """
    program = draw_program(draw, sizes, chunks, rows=5)
    ids = [one for one in range(sizes.target_vocabulary) if one != sizes.target_pad]
    target = program.target.copy()
    target[:, 0] = draw.rng.permutation(ids)[:5]
    return program.but(source=program.source[[0, 0, 0, 3, 3]], target=target)


def single_steps(length: int) -> list[int]:
    """Return the chunks of one token at a time."""
    return [1] * length


def call(probe: Probe, program: Chunked) -> Array:
    """Call the component, and demand an output of the right shape."""
    output = probe.output(*program.inputs)
    same_shape(output, (*program.target.shape, probe.sizes.target_vocabulary))
    return output


def real(probe: Probe, program: Program) -> Array:
    """Return the positions (B, T) that are no padding: what the others give is unspecified."""
    return np.asarray(program.target != probe.sizes.target_pad)


def matches_reference(probe: Probe, program: Program, what: str = "output") -> None:
    """Demand the output of decoding without a cache at the real tokens of `program`.

    Where tokens after padding may have one of two positions and none is declared, either passes.
    """
    actual, rows = call(probe, program), real(probe, program)
    subject = probe.subject
    choices = [subject.choices]
    if "cache_positions" not in subject.declared and not rows.all():
        options = CHOICES["cache_positions"].names
        choices = [subject.choices.but(cache_positions=option) for option in options]
    for one in choices[1:]:
        if fits(probe, *program.inputs, actual=actual, choices=one, rows=rows):
            return
    matches(probe, *program.inputs, actual=actual, rows=rows, what=what)


def matches_where_declared(probe: Probe, program: Chunked, choice: str, *, what: str) -> None:
    """Demand the output of the reference where the first option of `choice` is declared.

    Where nothing is declared, another output shows the other option.
    """
    subject = probe.subject
    value = subject.choices[choice]
    if value != CHOICES[choice].first:
        raise Absent(f"{choice} is declared as {value}")
    actual = call(probe, program)
    if choice not in subject.declared and not fits(
        probe, *program.inputs, actual=actual, choices=subject.choices
    ):
        raise Absent(f"{choice} is not declared, and the numbers are not those of {value}")
    matches(probe, *program.inputs, actual=actual, what=what)
