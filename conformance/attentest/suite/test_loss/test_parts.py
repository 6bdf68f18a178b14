"""Checks that the parts of a batch add up to the whole, in losses and in gradients."""

from collections.abc import Iterator

import numpy as np

from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest.judging.check import check
from attentest.suite.test_loss.cases import (
    COMPONENT,
    check_loss,
    draw_output,
    draw_sizes,
    number,
    pulled_back,
)
from attentest.testing.assertions import near
from attentest.testing.draw import Draw
from attentest_spec.setting import Floats, Tokens

Batch = tuple[Probe, Floats, Tokens]
Part = tuple[Floats, Tokens]


def _batch(subject: Subject, draw: Draw) -> Batch:
    """Draw a batch whose sequences have different numbers of targets, the first the most."""
    sizes, batch, length = draw_sizes(draw), draw.choose((2, 3, 4)), draw.length(3)
    probe = subject.part(COMPONENT, sizes)
    words = draw.tokens(batch, length, sizes.target_vocabulary, sizes.target_pad)
    lengths = draw.rng.integers(1, length, size=(batch, 1))
    lengths[0] = length
    if not subject.limits.padded_targets:
        lengths[:] = length
    target = np.where(np.arange(length) < lengths, words, sizes.target_pad)
    return probe, draw_output(draw, sizes, batch, length), target


def _parts(draw: Draw, target: Tokens, pad: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of two parts, each as long as its longest sequence."""
    cut = draw.integer(1, len(target) - 1)
    for rows in (slice(0, cut), slice(cut, None)):
        longest = int((target[rows] != pad).sum(axis=1).max())
        yield rows, slice(0, longest)


def _alone(output: Floats, target: Tokens, part: tuple[slice, slice]) -> Part:
    """Return a part of a batch as a loader makes it: each array in one piece of memory."""
    return np.ascontiguousarray(output[part]), np.ascontiguousarray(target[part])


@check("loss.parts-recombine")
def test_parts_recombine(subject: Subject, draw: Draw) -> None:
    probe, output, target = _batch(subject, draw)
    total = 0.0
    for part in _parts(draw, target, probe.sizes.target_pad):
        given = _alone(output, target, part)
        total += number(probe, target[part]) * float(probe.output(*given))
    whole = number(probe, target)
    near(
        subject,
        probe.output(output, target),
        np.array(total / whole),
        what="loss of the whole batch, compared with its parts,",
        terms=output.size,
        size=(1.0 + largest(output)) * target.size / whole,
    )
    check_loss(probe, output, target)


@check("loss.accumulated-gradient")
def test_accumulated_gradient(subject: Subject, draw: Draw) -> None:
    probe, output, target = _batch(subject, draw)
    total = np.zeros_like(output)
    for part in _parts(draw, target, probe.sizes.target_pad):
        given = _alone(output, target, part)
        total[part] = number(probe, target[part]) * pulled_back(probe, *given)
    whole = number(probe, target)
    found = pulled_back(probe, output, target)
    near(
        subject,
        found,
        total / whole,
        what="gradient of the whole batch, compared with its parts,",
        terms=output.shape[-1],
        size=max(1.0 / whole, largest(found)) * (1.0 + largest(as_floats(output))),
    )
