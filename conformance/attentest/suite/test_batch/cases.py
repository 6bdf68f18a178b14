"""Sizes, sequences and results that the checks of this chapter share."""

from typing import Annotated

import numpy as np

from attentest.harness.errors import Violation
from attentest.harness.subject import Probe, Subject
from attentest.testing.assertions import equal, holds
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.setting import Array, Tokens

RESULTS = {
    "batch": (
        "input of the decoder",
        "target of the decoder",
        "source mask",
        "target mask",
        "number of targets",
    ),
    "padded_batch": ("padded tokens", "mask"),
    "packed_batch": ("packed input", "packed target", "positions", "mask"),
}
"""The results of each component, in the order of the contract."""


def draw_sizes(draw: Draw, *, pads: tuple[int, ...] = (5, 0, 3), end: int = 0) -> Sizes:
    """Draw sizes with pad ids that differ, and ids of start and end that are none of them."""
    sizes = Sizes(
        source_vocabulary=17,
        target_vocabulary=17,
        source_pad=draw.choose((4, 2, 0)),  # where the pad id is fixed, it is replaced below
        target_pad=draw.choose(draw.pads(pads)),
        start=7,
        end=end or 9,
    )
    return draw.subject.limits.fitted(sizes)


def draw_target(draw: Draw, sizes: Sizes, batch: int, length: int) -> Annotated[Tokens, "B T1"]:
    """Draw targets (B, T1): words, and padding after them in all but the longest."""
    words = draw.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
    ends = draw.rng.integers(1, max(2, length), size=(batch, 1))
    ends[0] = length
    return np.where(np.arange(length) < ends, words, sizes.target_pad)


def draw_pair(draw: Draw, sizes: Sizes) -> tuple[Tokens, Tokens]:
    """Draw a source (B, S) and a target (B, T1)."""
    count = draw.batch()
    source = draw.source(count, draw.length(), sizes)
    return source, draw_target(draw, sizes, count, draw.length(2) + 1)


def draw_sequences(
    draw: Draw, sizes: Sizes, *, shortest: int = 1, count: int = 0
) -> tuple[Tokens, Tokens]:
    """Draw the tokens (N) of some sequences, and their lengths (B), which differ."""
    number = count or draw.choose((3, 1, 2, 4))
    lengths = draw.rng.permutation(np.arange(shortest, shortest + number)).astype(np.int64)
    words = draw.tokens(1, int(lengths.sum()), sizes.target_vocabulary, sizes.target_pad)
    return words[0], lengths


def check(probe: Probe, *inputs: Array, only: str = "") -> tuple[Array, ...]:
    """Return the results; demanded to be those of the reference, all or the one named `only`."""
    names = RESULTS[probe.component]
    found, expected = probe.results(*inputs), probe.expected_results(*inputs)
    if len(found) != len(expected):
        raise Violation(f"{probe.component} returns {len(found)} arrays, not {len(expected)}.")
    for name, one, other in zip(names, found, expected, strict=True):
        if only in ("", name):
            equal(one, other, what=name)
    return found


def of_kind(found: Array, kinds: str, what: str) -> None:
    """Demand that `found` is of one of the `kinds` of NumPy: "b" or "i"."""
    word = "boolean" if kinds == "b" else "integer"
    holds(found.dtype.kind in kinds, f"The {what} is {found.dtype}, not {word}.", actual=found)


def built(subject: Subject, component: str, sizes: Sizes) -> Probe:
    """Build `component`."""
    return subject.part(component, sizes)
