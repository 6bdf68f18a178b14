"""Checks of padded and of packed sequences."""

from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check as clause
from attentest.suite.test_batch.cases import (
    RESULTS,
    built,
    check,
    draw_sequences,
    draw_sizes,
    of_kind,
)
from attentest.testing.assertions import holds
from attentest.testing.common import fits_one_option
from attentest.testing.draw import Draw
from attentest_spec.setting import Array

TOKENS, KEPT = RESULTS["padded_batch"]


@clause("batch.padded-tokens", examples=5)
def test_padded_tokens(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = built(subject, "padded_batch", sizes)
    found = check(probe, *draw_sequences(draw, sizes), only=TOKENS)
    of_kind(found[0], "i", TOKENS)


def _option(subject: Subject, draw: Draw, choice: str) -> None:
    """Demand the tokens of the declared option of `choice`, and of no other one."""
    sizes = draw_sizes(draw)
    probe = built(subject, "padded_batch", sizes)
    inputs = draw_sequences(draw, sizes, count=draw.choose((2, 3)))
    fits_one_option(probe, *inputs, actual=probe.output(*inputs), choice=choice, without={})


@clause("batch.padding-side", examples=5)
def test_padding_side(subject: Subject, draw: Draw) -> None:
    _option(subject, draw, "padding_side")


@clause("batch.sequence-marks", examples=5)
def test_sequence_marks(subject: Subject, draw: Draw) -> None:
    _option(subject, draw, "sequence_marks")


@clause("batch.padded-length", examples=5)
def test_padded_length(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    probe = built(subject, "padded_batch", sizes)
    for shortest in (draw.choose((1, 2)), 40):
        inputs = draw_sequences(draw, sizes, shortest=shortest)
        found, expected = probe.output(*inputs), probe.expected(*inputs).output
        holds(
            found.shape == expected.shape,
            f"Sequences of {', '.join(map(str, inputs[1]))} tokens are padded to {found.shape}, "
            f"not {expected.shape}.",
            actual=found,
            expected=expected,
        )
    # One call with longer sequences must not decide on the next one.
    shorter = draw_sequences(draw, sizes)
    check(probe, *shorter, only=TOKENS)


@clause("batch.kept-by-position", examples=5)
def test_kept_by_position(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw)
    sizes = sizes.but(end=draw.choose((sizes.target_pad, 9)))
    tokens, lengths = draw_sequences(draw, sizes)
    tokens[draw.rng.integers(len(tokens))] = sizes.target_pad  # a word with the id of the pad
    found = check(built(subject, "padded_batch", sizes), tokens, lengths, only=KEPT)
    of_kind(found[1], "b", KEPT)


def _packed(subject: Subject, draw: Draw) -> tuple[Probe, tuple[Array, Array]]:
    """Build a packed batch, and draw sequences for it, the shortest of one step."""
    sizes = draw_sizes(draw)
    return built(subject, "packed_batch", sizes), draw_sequences(draw, sizes, shortest=2)


@clause("batch.packed-steps", examples=5)
def test_packed_steps(subject: Subject, draw: Draw) -> None:
    probe, inputs = _packed(subject, draw)
    read, wanted = RESULTS["packed_batch"][:2]
    check(probe, *inputs, only=read)
    check(probe, *inputs, only=wanted)


@clause("batch.packed-mask", examples=5)
def test_packed_mask(subject: Subject, draw: Draw) -> None:
    probe, inputs = _packed(subject, draw)
    found = check(probe, *inputs, only=RESULTS["packed_batch"][3])
    of_kind(found[3], "b", "mask")


@clause("batch.packed-positions", examples=5)
def test_packed_positions(subject: Subject, draw: Draw) -> None:
    probe, inputs = _packed(subject, draw)
    check(probe, *inputs, only=RESULTS["packed_batch"][2])
