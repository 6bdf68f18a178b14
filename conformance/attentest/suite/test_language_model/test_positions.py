"""Checks of the chapter `language_model`: positions that are not given, padding and causality."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.judging.check import check
from attentest.suite.test_language_model.cases import (
    Text,
    agree,
    draw_text,
    exchange_tokens,
    from_first_token,
    given_kinds,
    matches_text,
    output_changes,
    padding,
    require_mask,
    shows_declared,
    sides,
    supported_kinds,
)
from attentest.testing.draw import Draw
from attentest_spec.setting import Array


@check("language_model.padded-positions", examples=4)
def test_padded_positions(subject: Subject, draw: Draw) -> None:
    supported_kinds(subject, ("none",))
    shows_declared(draw_text(subject, draw, side="left"), "padded_positions")


@check("language_model.default-positions", examples=3)
def test_default_positions(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, length=draw.length(3, 5))
    first = matches_text(case).copy()
    longer = min(case.tokens.shape[1] + draw.integer(3, 7), case.probe.sizes.max_length)
    shape = (draw.choose((2, 4)), longer)
    matches_text(case.but(tokens=draw.rng.integers(0, case.vocabulary, size=shape)))
    agree(case, case.output(), first, what="output of a second call with the same tokens")


@check("language_model.distance-alone", examples=3)
def test_distance_alone(subject: Subject, draw: Draw) -> None:
    choices = subject.choices
    if choices.attention_rotary == "none" or choices.positional_encoding != "none":
        raise Absent("positions enter by more than rotary turns")
    if choices.rotary_scaling == "dynamic-ntk":
        raise Absent("dynamic scaling depends on the greatest position")
    weighted = choices.query_key_norm in ("per-head", "whole-projection")
    if weighted and choices.query_key_norm_place == "after-rotation":
        raise Absent("turned columns are weighted each by its own number")
    case = draw_text(subject, draw, kinds=given_kinds(subject)[:1])
    start = np.tile(np.arange(case.tokens.shape[1]), (len(case.tokens), 1))
    room = case.probe.sizes.max_length - case.tokens.shape[1]
    near, far = case.but(positions=start), case.but(positions=start + draw.integer(1, room))
    agree(far, far.output(), near.output(), what="output with all positions moved by one number")


@check("language_model.order-matters", examples=3)
def test_order_matters(subject: Subject, draw: Draw) -> None:
    choices = subject.choices
    if choices.attention_rotary == "none" and choices.positional_encoding == "none":
        raise Absent(f"{subject.name} has no positions")
    case = draw_text(subject, draw, length=draw.length(4, 7), layers=1)
    case.tokens[:, 0] = exchange_tokens(draw, case.tokens[:, 1], case.vocabulary)
    swapped = case.tokens.copy()
    swapped[:, 0], swapped[:, 1] = case.tokens[:, 1], case.tokens[:, 0]
    other, last = case.but(tokens=swapped), np.zeros(case.tokens.shape, dtype=bool)
    last[:, 2:] = case.tokens[:, 2:] >= 0
    why = "after exchanging the first two tokens"
    output_changes(case, other, case.output(), other.output(), last, why)


@check("language_model.causality", examples=2)
def test_causality(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, layers=draw.layers(draw.several_layers(), 3))
    step = draw.integer(1, case.tokens.shape[1] - 1)
    moved = case.tokens.copy()
    moved[:, step:] = exchange_tokens(draw, moved[:, step:], case.vocabulary)
    later = case.but(tokens=moved)
    first, second = _before(step, case, later)
    here = np.zeros(moved.shape, dtype=bool)
    here[:, step] = True
    output_changes(case, later, first, second, here, f"at token {step} after changing it")
    if "padding" in subject.limits.masks:
        for side in sides(subject):
            mask = padding(draw, len(moved), moved.shape[1], side)
            padded = case.but(mask=mask)
            if padded.is_finite():  # `left-padding` is broken otherwise
                _before(step, padded, later.but(mask=mask))


def _before(step: int, case: Text, later: Text) -> tuple[Array, Array]:
    """Demand the same output before `step` of a text and of one that differs from there on."""
    first, second = case.output(), later.output()
    past = case.real.copy()
    past[:, step:] = False
    what = f"output before token {step} after changing the text from there on"
    agree(case, second, first, rows=past, what=what)
    return first, second


@check("language_model.prefix-consistency", examples=3)
def test_prefix_consistency(subject: Subject, draw: Draw) -> None:
    if subject.choices.rotary_scaling == "dynamic-ntk":
        raise Absent("dynamic scaling depends on the length of the text")
    layers = draw.layers(draw.several_layers(), 3)
    case = draw_text(subject, draw, length=draw.length(3, 9), layers=layers)
    steps = draw.integer(1, case.tokens.shape[1] - 1)
    prefix = case.but(tokens=case.tokens[:, :steps].copy())
    what = f"output for the first {steps} tokens alone"
    agree(case, prefix.output(), case.output()[:, :steps], what=what)


@check("language_model.left-padding", examples=4)
def test_left_padding(subject: Subject, draw: Draw) -> None:
    require_mask(subject)
    # What is no number in a row of padding spreads to others in the second layer.
    layers = draw.several_layers()
    case = draw_text(subject, draw, side="left", length=draw.length(4, 7), layers=layers)
    mask = np.asarray(case.mask)
    _as_alone(case.but(positions=_of_first_tokens(subject, mask)), draw)


@check("language_model.right-padding", examples=4)
def test_right_padding(subject: Subject, draw: Draw) -> None:
    hides = "padding" in subject.limits.masks
    case = draw_text(subject, draw, side="right" if hides else "", length=draw.length(4, 7))
    if not hides:  # later tokens are hidden from earlier ones without a mask
        _as_prefix(case, draw.integer(1, case.tokens.shape[1] - 1))
        return
    _as_alone(case, draw)


def _of_first_tokens(subject: Subject, mask: Array) -> Array | None:
    """Return positions that begin at the first token; None where they are the same without."""
    choices = subject.choices
    if "per-sample" in subject.limits.positions:
        return from_first_token(mask)
    if choices.positional_encoding != "none" and choices.padded_positions != "real-tokens":
        raise Absent(f"{subject.name} takes no positions of each sequence")
    return None


def _as_alone(case: Text, draw: Draw) -> None:
    """Demand for every sequence what it gives without padding, whatever the padding is."""
    if case.choices.rotary_scaling == "dynamic-ntk":
        raise Absent("dynamic scaling depends on the longest sequence")
    together = matches_text(case)
    moved = np.where(case.real, case.tokens, exchange_tokens(draw, case.tokens, case.vocabulary))
    other = case.but(tokens=moved)
    agree(case, other.output(), together, rows=case.real, what="output with other padding")
    for number, real in enumerate(case.real):
        alone = Text(case.probe, case.tokens[number : number + 1, real].copy())
        what = f"output of sequence {number} without its padding"
        agree(alone, alone.output(), together[number : number + 1, real], what=what)


def _as_prefix(case: Text, length: int) -> None:
    alone = case.but(tokens=case.tokens[:, :length].copy())
    agree(case, alone.output(), case.output()[:, :length], what="output without later tokens")


@check("language_model.batch-independence", examples=3)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    case = draw_text(subject, draw, batch=draw.choose((3, 2, 4)), length=draw.length(2, 6))
    together = as_floats(matches_text(case))
    moved = case.tokens.copy()
    moved[1:] = exchange_tokens(draw, moved[1:], case.vocabulary)
    other = case.but(tokens=moved)
    what = "output of the first sequence beside other ones"
    agree(case, as_floats(other.output())[:1], together[:1], what=what)
    alone = Text(case.probe, case.tokens[:1].copy())
    agree(alone, as_floats(alone.output()), together[:1], what="output of one sequence alone")
