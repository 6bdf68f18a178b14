"""Checks of shifted targets, of their masks, and of the number that counts."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check as clause
from attentest.suite.test_batch.cases import (
    RESULTS,
    built,
    check,
    draw_pair,
    draw_sizes,
    draw_target,
    of_kind,
)
from attentest.testing.assertions import equal
from attentest.testing.draw import Draw

READ, WANTED, SOURCE_MASK, TARGET_MASK, NUMBER = RESULTS["batch"]


@clause("batch.decoder-input", examples=5)
def test_decoder_input(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    check(built(subject, "batch", sizes), *draw_pair(draw, sizes), only=READ)


@clause("batch.decoder-target", examples=5)
def test_decoder_target(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    check(built(subject, "batch", sizes), *draw_pair(draw, sizes), only=WANTED)


@clause("batch.shifted-once", examples=5)
def test_shifted_once(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    source, _ = draw_pair(draw, sizes)
    # All tokens of a sequence differ, so that one step is no other.
    order = draw.rng.permuted(np.tile(np.arange(6, 12), (len(source), 1)), axis=1)
    read, wanted, *_ = built(subject, "batch", sizes).results(source, order)
    equal(wanted[:, :-1], read[:, 1:], what="target of the decoder, compared with the next input,")
    equal(wanted[:, -1], order[:, -1], what="last target of the decoder")


@clause("batch.source-mask", examples=5)
def test_source_mask(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe, count = built(subject, "batch", sizes), draw.batch()
    source = draw.source(count, draw.length(2), sizes)  # a single word is never padding
    check(probe, source, draw_target(draw, sizes, count, draw.length(2) + 1), only=SOURCE_MASK)


@clause("batch.target-mask", examples=5)
def test_target_mask(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    source, target = draw_pair(draw, sizes)
    target[-1, -1:] = sizes.target_pad  # a sequence whose last word is read and gives padding
    target[-1, :-1] = draw.tokens(1, target.shape[1] - 1, sizes.target_vocabulary, sizes.target_pad)
    target[: len(target) - 1, -2:] = sizes.target_pad  # padding that is an input, in all others
    check(built(subject, "batch", sizes), source, target, only=TARGET_MASK)


@clause("batch.count", examples=5)
def test_count(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    source, target = draw_pair(draw, sizes)
    target[-1, 1:] = draw.tokens(1, target.shape[1] - 1, 17, sizes.target_pad)
    target[0, -1] = sizes.target_pad  # it counts neither as a target nor as an input
    check(built(subject, "batch", sizes), source, target, only=NUMBER)


@clause("batch.own-pad-ids", examples=5)
def test_own_pad_ids(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, pads=(5, 1, 3))
    source, target = draw_pair(draw, sizes)
    # Each side holds the pad id of the other one, and 0, as words.
    words = draw.choose((0, sizes.target_pad, 0)), draw.choose((0, sizes.source_pad, 0))
    source[:, 0], target[:, 0] = words
    target[:, 1] = draw.choose((sizes.source_pad, 0))
    check(built(subject, "batch", sizes), source, target)


@clause("batch.sequences-independent", examples=5)
def test_sequences_independent(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = built(subject, "batch", sizes)
    count, length = draw.choose((2, 3)), draw.length(2) + 1
    source = draw.source(count, draw.length(), sizes)
    target = draw_target(draw, sizes, count, length)
    target[-1, 1:] = sizes.target_pad
    whole = check(probe, source, target)
    for row in (slice(number, number + 1) for number in range(count)):
        alone = probe.results(source[row], target[row])
        for name, one, other in zip(RESULTS["batch"][:4], whole, alone, strict=False):
            equal(one[row], other, what=f"{name} of a sequence, compared with it alone,")


@clause("batch.shapes", examples=5)
def test_shapes(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    batch, length = draw.choose(((1, 2), (3, 2), (1, 4), (2, 4)))
    source = draw.source(batch, draw.choose((1, 3)), sizes)
    target = draw_target(draw, sizes, batch, length)
    found = check(built(subject, "batch", sizes), source, target)
    for name, kinds, one in zip(RESULTS["batch"], "iibbi", found, strict=True):
        of_kind(one, kinds, name)


@clause("batch.inputs-untouched", examples=5)
def test_inputs_untouched(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    # The harness compares what was given with what is left of it.
    built(subject, "batch", sizes).results(*draw_pair(draw, sizes))
