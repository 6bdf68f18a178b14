"""Checks of the chapter `model`: padding, and the order of tokens."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    ModelCall,
    agree,
    call_model,
    draw_call,
    exchange_tokens,
    output_changes,
    real_token,
    require_hiding,
    without_pads,
)
from attentest.testing.assertions import matches
from attentest.testing.draw import Draw
from attentest_spec.order import ordered
from attentest_spec.setting import Array


@check("model.padding-in-a-batch", examples=2)
def test_padding_in_a_batch(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    longer = min(3, subject.limits.length or 3)
    case = draw_call(subject, draw, batch=3, lengths=(draw.length(2), draw.length(longer)))
    source = draw.source(1, draw.integer(1, case.source.shape[1] - 1), case.sizes)
    target = draw.target(1, draw.integer(longer - 1, case.target.shape[1] - 1), case.sizes)
    # The second step is real in this pair, and padding in the others.
    last = None if "target" in subject.limits.right_padded else 2
    case.target[:, 1:last] = case.sizes.target_pad
    target[:, 1:2] = real_token(case.sizes.target_pad)
    alone = call_model(case.probe, source, target)
    for one in range(3):
        together = case.but(
            source=_padded(case.source, one, source, case.sizes.source_pad),
            target=_padded(case.target, one, target, case.sizes.target_pad),
        )
        agree(
            together,
            together.output()[one : one + 1, : target.shape[1]],
            alone,
            rows=case.but(target=target).real,
            what=f"output of one pair, number {one} of a padded batch,",
        )


def _padded(tokens: Array, place: int, alone: Array, pad: int) -> Array:
    """Return `tokens` with the sentence `alone` in row `place`, padded at its end."""
    batch = tokens.copy()
    batch[place] = pad
    batch[place, : alone.shape[1]] = alone
    return batch


@check("model.pad-ids", examples=2)
def test_pad_ids(subject: Subject, draw: Draw) -> None:
    for pads in ((0, 10), (10, 0), draw.choose(((3, 3), (1, 2)))):
        case = draw_call(
            subject,
            draw,
            lengths=(draw.length(3), draw.length(3)),
            source_pad=pads[0],
            target_pad=pads[1],
        )
        _mix_pads(case)
        matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)


def _mix_pads(case: ModelCall) -> None:
    """Write the pads of both sides into both sentences, beside words that are pads of neither.

    Those of a side come last where its padding is limited to the end.
    """
    pads = source_pad, target_pad = case.sizes.source_pad, case.sizes.target_pad
    word = next(one for one in (5, 6, 7) if one not in pads)
    ends = case.probe.subject.limits.right_padded
    for side, tokens, pad in zip(
        ("source", "target"), (case.source, case.target), pads, strict=True
    ):
        if side in ends:
            tokens[:, 1], tokens[:, 2:] = word, pad
        else:
            tokens[:, 1], tokens[:, 2] = pad, word
    if source_pad != target_pad:
        case.source[:, 0], case.target[:, 0] = target_pad, source_pad


@check("model.source-order-matters", examples=2)
def test_source_order_matters(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, lengths=(draw.length(2), draw.length()))
    sizes, last = case.sizes, case.source.shape[1] - 1
    source = without_pads(draw, case)[0]
    moved = exchange_tokens(draw, source[:, :1], sizes.source_vocabulary, sizes.source_pad)[:, 0]
    source[:, last] = moved
    swapped = source.copy()
    swapped[:, 0], swapped[:, last] = source[:, last], source[:, 0]
    before, after = case.but(source=source), case.but(source=swapped)
    first, second = before.output(), after.output()
    if subject.choices.positional_encoding == "none" and not ordered(subject.choices):
        agree(
            before,
            second,
            first,
            rows=case.real,
            what="output, no positions declared, after exchanging two source tokens",
        )
    else:
        why = "after exchanging two tokens of the source"
        output_changes(before, after, first, second, case.real, why)


@check("model.causality", examples=2)
def test_causality(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    case = draw_call(subject, draw, lengths=(draw.length(), draw.length(2)))
    step = draw.integer(1, case.target.shape[1] - 1)
    target = case.target.copy()
    sizes = case.sizes
    target[:, step] = draw.tokens(len(target), 1, sizes.target_vocabulary, sizes.target_pad)[:, 0]
    later = target.copy()
    later[:, step:] = exchange_tokens(
        draw, target[:, step:], sizes.target_vocabulary, sizes.target_pad
    )
    before, after = case.but(target=target), case.but(target=later)
    first, second = before.output(), after.output()
    past = before.real.copy()
    past[:, step:] = False
    agree(
        before,
        second,
        first,
        rows=past,
        what=f"output before step {step} after changing the target from there on",
    )
    here = np.zeros_like(past)
    here[:, step] = True
    output_changes(before, after, first, second, here, f"at step {step} after changing its token")


@check("model.prefix-consistency", examples=2)
def test_prefix_consistency(subject: Subject, draw: Draw) -> None:
    require_hiding(subject)
    case = draw_call(subject, draw, lengths=(draw.length(), draw.length(2)))
    steps = draw.integer(1, case.target.shape[1] - 1)
    prefix = case.but(target=case.target[:, :steps].copy())
    agree(
        case,
        prefix.output(),
        case.output()[:, :steps],
        rows=prefix.real,
        what=f"output for the first {steps} steps of the target",
    )
