"""Checks of the chapter `decoding`: hypotheses of a beam that have ended."""

import numpy as np

from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoding.beams import BeamCall, draw_beam_call, has_an_end, right
from attentest.suite.test_decoding.cases import RARE, draw_script, draw_sizes, filling, require_stop
from attentest.testing.assertions import equal, holds
from attentest.testing.draw import Draw


@check("decoding.beam-finished-keeps", examples=8)
def test_beam_finished_keeps(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    case = draw_beam_call(
        subject, draw, beams=draw.integer(2, 4), new=5, ending=2.0, wanted=has_an_end
    )
    logits, sizes = case.script.logits.copy(), case.script.sizes
    word = next(one for one in range(9) if one not in (sizes.end, sizes.target_pad))
    for after in (
        sizes.end,
        sizes.target_pad,
    ):  # whoever goes on after an end pays much, or nothing
        logits[:, :, after] = RARE
        logits[:, :, after, word] = draw.choose((-RARE, RARE + 1.0))
    found = right(case.but(script=case.script.but(logits=logits)))
    fill = filling(subject, sizes)
    for row in found.tokens[:, :, case.script.given :].reshape(-1, 5).tolist():
        rest = row[row.index(sizes.end) + 1 :] if sizes.end in row else []
        text = f"After the end token there is {rest}, and not {fill} alone."
        holds(set(rest) <= {fill}, text, actual=found.tokens)


@check("decoding.beam-finished-not-lost", examples=4)
def test_beam_finished_not_lost(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    new, ends = draw.integer(4, 6), draw.integer(1, 3)
    sizes = draw_sizes(draw, vocabulary=8, alpha=draw.choose((0.0, 0.6)))
    script = draw_script(draw, batch=2, new=new, ends=[ends, ends], sizes=sizes)
    logits = np.round(draw.rng.normal(scale=0.1, size=script.logits.shape), 3)
    logits[:, : ends - 1] += 0.6 * script.logits[:, : ends - 1]
    logits[..., sizes.target_pad] = logits[..., sizes.end] = RARE
    logits[:, ends - 1, :, sizes.end] = 5.0
    case = BeamCall(subject, script.but(logits=logits), draw.integer(2, 3))
    tokens = case.found().tokens
    best = case.expected().tokens[:, 0]
    for row, wished in zip(tokens[:, 0], best, strict=True):
        if case.script.sizes.end in wished[1:]:
            text = f"The finished hypothesis {wished.tolist()} is lost; the best is {row.tolist()}."
            holds(bool((row == wished).all()), text, actual=tokens)


def _tells(case: BeamCall, choice: str, options: tuple[str, str]) -> bool:
    """Say whether the options of a choice lead to different tokens."""
    one, other = (case.expected(**{choice: option}).tokens for option in options)
    return not np.array_equal(one, other)


def _declared_tokens(case: BeamCall, choice: str, options: tuple[str, str]) -> None:
    """Demand the tokens of the declared option, in a call in which the options differ."""
    declared = str(case.subject.choices[choice])
    tokens = case.found().tokens
    expected = case.expected().tokens
    other = next(one for one in options if one != declared)
    text = f"{choice} is declared as {declared}; the hypotheses show {other}."
    shown = case.expected(**{choice: other}).tokens
    holds(not np.array_equal(tokens, shown), text, actual=tokens, expected=expected)
    equal(tokens, expected, what="hypotheses")


@check("decoding.beam-finished", examples=4)
def test_beam_finished(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    options = ("in-beam", "set-aside")
    case = draw_beam_call(
        subject,
        draw,
        beams=draw.integer(2, 3),
        new=5,
        ending=1.5,
        batch=3,
        wanted=lambda case: _tells(case, "finished_beams", options),
    )
    _declared_tokens(case, "finished_beams", options)


@check("decoding.beam-stop", examples=8)
def test_beam_stop(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    if subject.choices.finished_beams == "in-beam":
        # All hypotheses of the beam must be finished, and then nothing changes any more.
        right(draw_beam_call(subject, draw, beams=2, new=5, ending=2.0))
        return
    declared = str(subject.choices.beam_stop)
    # The two early ends differ in what ends at the greatest length alone.
    options = (declared, "n-finished" if declared == "length" else "length")
    case = draw_beam_call(
        subject,
        draw,
        beams=2,
        new=6,
        ending=1.0,
        batch=3,
        alpha=1.0,
        wanted=lambda case: _tells(case, "beam_stop", options),
    )
    _declared_tokens(case, "beam_stop", options)
