"""Checks of the chapter `decoding`: beam search."""

from functools import partial

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_decoding.beams import (
    BeamCall,
    agrees,
    close,
    draw_beam_call,
    has_an_end,
    is_steady,
    optimum,
    right,
)
from attentest.suite.test_decoding.cases import (
    RARE,
    Script,
    draw_script,
    draw_sizes,
    stops,
    wanted,
)
from attentest.testing.assertions import equal, holds
from attentest.testing.common import same_precision
from attentest.testing.draw import Draw


def ends_early(subject: Subject) -> bool:
    """Say whether open hypotheses are given up for finished ones that may be worse."""
    choices = subject.choices
    return choices.finished_beams == "set-aside" and choices.beam_stop != "length"


@check("decoding.beam-formula", examples=5)
def test_beam_formula(subject: Subject, draw: Draw) -> None:
    right(draw_beam_call(subject, draw))
    penalised = draw_beam_call(
        subject,
        draw,
        beams=2,
        batch=3,
        new=5,
        alpha=1.0,
        ending=1.5,
        preferred=_is_lost_by_its_sum,
    )
    right(penalised)


def _is_lost_by_its_sum(case: BeamCall) -> bool:
    """Say whether a search without the penalty loses what is best with it."""
    plain = case.beam(length_penalty="none").tokens
    best = case.beam().tokens[:, 0]
    return not bool((plain == best[:, None]).all(axis=-1).any(axis=-1).all())


@check("decoding.beam-shapes", examples=3)
def test_beam_shapes(subject: Subject, draw: Draw) -> None:
    for batch, beams in ((1, 1), (1, 3), (3, 1)):
        case = draw_beam_call(subject, draw, beams=beams, batch=batch, new=2)
        probe = case.probe()
        right_scores = probe(*case.inputs).weights
        case.found(probe)
        if right_scores is not None:
            same_precision(probe, right_scores)


@check("decoding.beam-one-is-greedy", examples=8)
def test_beam_one_is_greedy(subject: Subject, draw: Draw) -> None:
    draw_one = partial(draw_beam_call, subject, draw, beams=1, alpha=0.0, new=draw.integer(1, 6))
    for case in (draw_one(), draw_one(ending=2.0, batch=2, preferred=_ends_at_once)):
        _require_exponent(case, 0.0)
        found = case.found()
        equal(found.tokens[:, 0], wanted(subject, case.script), what="hypotheses of one beam")


def _ends_at_once(case: BeamCall) -> bool:
    """Say whether the first new token of a hypothesis of the reference is the end."""
    first = case.expected().tokens[:, :, case.script.given]
    return bool((first == case.script.sizes.end).any())


def _require_exponent(case: BeamCall, alpha: float) -> None:
    """End as absent where the exponent of the length penalty is another one, and fixed."""
    if case.script.sizes.alpha != alpha:
        raise Absent(f"the exponent of {case.subject.name} is always {case.script.sizes.alpha:g}")


@check("decoding.beam-optimum", examples=4)
def test_beam_optimum(subject: Subject, draw: Draw) -> None:
    for words, new in ((2, 3 if stops(subject) else 2), (6, 2)):
        _finds_the_optimum(subject, draw, words, new)


def _finds_the_optimum(subject: Subject, draw: Draw, count: int, new: int) -> None:
    """Demand the optimum where `count` words are possible, and the best begins with the last."""
    sizes = draw_sizes(draw, vocabulary=9, alpha=draw.choose((0.0, 0.6, 1.0)))
    script = draw_script(draw, batch=1, new=new, ends=[], sizes=sizes)
    every = [one for one in range(9) if one not in (sizes.target_pad, sizes.end)]
    words = [int(one) for one in draw.rng.permutation(every)[:count]]
    last = words[-1]
    live = [*words, sizes.end]
    logits = np.full(script.logits.shape, 4 * RARE)
    noise = draw.rng.normal(scale=0.1, size=(*logits.shape[:-1], count + 1))
    logits[..., live] = np.round(noise, 3)
    logits[:, 0, :, sizes.end] -= 3.0
    logits[:, 0, :, last] -= 1.4
    logits[:, 1:, last, draw.choose((last, sizes.end))] += 8.0
    case = BeamCall(subject, script.but(logits=logits), 7)
    best, value = optimum(case, live)
    full = [*best.begin, *best.new]
    for beams in (7, 2, 1):
        narrow = case.but(beams=beams)
        tokens = narrow.found().tokens
        top = float(narrow.rescored(tokens[:, :1])[0, 0])
        text = f"The best of {beams} beams has the score {top:.6g}; the best of all {value:.6g}"
        holds(top <= value + case.tolerance, f"{text}, which is less.", actual=tokens[0, 0])
        if beams == case.beams and not ends_early(subject):
            holds(
                top >= value - case.tolerance,
                f"{text}, with the tokens {full}.",
                actual=tokens[0, 0],
            )


@check("decoding.beam-wins", examples=4)
def test_beam_wins(subject: Subject, draw: Draw) -> None:
    sizes = draw_sizes(draw, vocabulary=8, alpha=draw.choose((0.0, 0.6)))
    script = draw_script(draw, batch=draw.choose((1, 2)), new=2, ends=[], sizes=sizes)
    words = [one for one in range(8) if one not in (sizes.target_pad, sizes.end)]
    first, second, *_ = draw.rng.permutation(words)
    logits = np.round(draw.rng.normal(scale=0.2, size=script.logits.shape), 3)
    logits[..., sizes.target_pad] = RARE
    logits[:, 0, :, [first, second]] = np.array([[[4.2]], [[4.0]]])
    logits[:, 1, second, sizes.end] = 5.0
    case = BeamCall(subject, script.but(logits=logits), 2)
    tokens = case.found().tokens
    best = [*script.begin[0].tolist(), int(second), sizes.end]
    for row in tokens[:, 0].tolist():
        text = f"The best sequence is {best}, and the first of two beams {row}."
        holds(row == best, text, actual=tokens)


@check("decoding.beam-scores", examples=5)
def test_beam_scores(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=draw.integer(2, 4), new=draw.integer(3, 5))
    found = case.found()
    close(case, found.known(subject), case.rescored(found.tokens), "scores of their tokens")


@check("decoding.beam-probabilities", examples=4)
def test_beam_probabilities(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=draw.integer(2, 4), new=draw.integer(2, 4))
    if subject.choices.output == "logits":
        logits = case.script.logits
        constants = np.round(draw.rng.normal(scale=20.0, size=(*logits.shape[:-1], 1)), 1)
        raised = case.but(script=case.script.but(logits=logits + constants))
        if not is_steady(raised, draw):
            raise Absent(f"{subject.precision} has near ties in large logits")
        agrees(raised, raised.found(), case.expected(), what="hypotheses for raised logits")
    found = right(case)
    if found.scores is not None:
        greatest = float(found.scores.max())
        text = f"A score is {greatest:.3g}: no probability has a positive logarithm."
        holds(greatest <= case.tolerance, text)


def _shown(case: BeamCall, choice: str, options: tuple[str, ...]) -> None:
    """Demand that the scores are those of the declared option, and of no other one."""
    found = case.found()
    scores = found.known(case.subject)
    declared = case.subject.choices[choice]
    values = {one: case.rescored(found.tokens, **{choice: one}) for one in options}
    fits = [one for one in options if np.abs(values[one] - scores).max() <= case.tolerance]
    if not fits:
        close(case, scores, values[str(declared)], f"option {declared} of {choice}")
    holds(
        fits == [declared],
        f"{choice} is declared as {declared}; the scores show {' and '.join(fits)}.",
        actual=scores,
        expected=values[str(declared)],
    )


@check("decoding.beam-length-penalty", examples=4)
def test_beam_length_penalty(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(
        subject, draw, beams=3, alpha=draw.choose((0.6, 1.0)), new=draw.integer(3, 5), ends_at=2
    )
    _shown(case, "length_penalty", ("wu", "power", "none"))
    plain = draw_beam_call(subject, draw, beams=2, alpha=0.0, new=3)
    _require_exponent(plain, 0.0)
    found = plain.found()
    sums = plain.rescored(found.tokens, length_penalty="none")
    close(plain, found.known(subject), sums, "sums of log-probabilities, at an exponent of 0")


@check("decoding.beam-counted-length", examples=4)
def test_beam_counted_length(subject: Subject, draw: Draw) -> None:
    if subject.choices.length_penalty == "none":
        raise Absent(f"{subject.name} declares no length penalty")
    options = ("new", "without-end", "all") if stops(subject) else ("new", "all")
    case = draw_beam_call(
        subject, draw, beams=3, alpha=1.0, new=4, ends_at=2, ending=1.5, wanted=has_an_end
    )
    _shown(case, "counted_length", options)


@check("decoding.beam-sorted", examples=4)
def test_beam_sorted(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(
        subject,
        draw,
        beams=draw.integer(2, 4),
        new=draw.integer(3, 5),
        ending=1.5,
        alpha=1.0,
        wanted=_is_not_in_the_order_of_sums,
    )
    found = case.found()
    scores = case.rescored(found.tokens)
    rising = float(np.diff(scores, axis=1).max(initial=-np.inf))
    text = f"A hypothesis is better than the one before it, by {rising:.3g}."
    holds(rising <= case.tolerance, text, actual=scores)
    best = case.rescored(case.expected().tokens)
    text = "The first hypothesis is not the best one of the search."
    holds(bool((scores[:, 0] >= best[:, 0] - case.tolerance).all()), text, actual=found.tokens)


def _is_not_in_the_order_of_sums(case: BeamCall) -> bool:
    sums = case.rescored(case.beam().tokens, length_penalty="none")
    same = not stops(case.subject) or case.subject.choices.length_penalty == "none"
    return same or bool((np.diff(sums, axis=1) > 0).any())


@check("decoding.beam-distinct", examples=4)
def test_beam_distinct(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=draw.integer(2, 4))
    if case.returned == 1:
        raise Absent(f"{subject.name} returns the best hypothesis alone")
    for rows in case.found().tokens:
        different = len({tuple(row) for row in rows.tolist()})
        text = f"Of {case.beams} hypotheses {different} are different."
        holds(different == case.beams, text, actual=rows)


@check("decoding.beam-batch-independence", examples=4)
def test_beam_batch_independence(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(
        subject,
        draw,
        batch=draw.choose((2, 3)),
        beams=draw.integer(2, 3),
        ending=1.5,
        new=5,
        preferred=_has_one_that_is_over,
    )
    together = case.found()
    for number in range(len(together.tokens)):
        alone = case.but(script=case.script.rows(slice(number, number + 1))).found()
        what = f"hypotheses of sequence {number} in a batch"
        equal(together.tokens[number : number + 1], alone.tokens, what=what)
        if together.scores is not None and alone.scores is not None:
            mine = together.scores[number : number + 1]
            close(case, mine, alone.scores, "scores of the sequence alone")
    equal(together.tokens, case.expected().tokens, what="hypotheses")


def _has_one_that_is_over(case: BeamCall) -> bool:
    """Say whether the beams of one sequence have all ended before those of another one."""
    new = case.beam().tokens[:, :, case.script.given :]
    ended = (new[:, :, :-1] == case.script.sizes.end).any(axis=-1).all(axis=-1)
    return not stops(case.subject) or bool(ended.any() and not ended.all())


@check("decoding.beam-begin-stays", examples=4)
def test_beam_begin_stays(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=draw.integer(2, 4), batch=draw.choose((2, 1, 2)))
    script = case.script
    words = [
        one
        for one in range(script.sizes.target_vocabulary)
        if one not in (script.sizes.end, script.sizes.target_pad)
    ]
    begin = draw.rng.choice(words, size=script.begin.shape).astype(np.int64)
    begin[1:, -1] = draw.rng.choice([one for one in words if one != begin[0, -1]])
    moved = case.but(script=script.but(begin=begin))
    for one in (case, moved):
        tokens = one.found().tokens
        given = np.broadcast_to(one.script.begin[:, None], tokens[:, :, : script.given].shape)
        equal(tokens[:, :, : script.given], given, what="given tokens in the hypotheses")
    equal(case.found().tokens, case.expected().tokens, what="hypotheses")


@check("decoding.beam-exact-length", examples=4)
def test_beam_exact_length(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=draw.integer(1, 3), ends_at=99)
    tokens = right(case).tokens
    special = (tokens == case.script.sizes.target_pad).sum()
    holds(special == 0, f"There is padding in {special} places where nothing ended.", actual=tokens)


@check("decoding.beam-no-memory-of-calls", examples=3)
def test_beam_no_memory_of_calls(subject: Subject, draw: Draw) -> None:
    first = draw_beam_call(subject, draw, beams=3, batch=2)
    probe = first.probe()
    first.found(probe)
    for batch, beams in ((3, 2), (1, 3)):
        other = _other(subject, draw, first.script, batch, beams)
        agrees(other, other.found(probe), other.expected(), what="hypotheses of a later call")


def _other(subject: Subject, draw: Draw, like: Script, batch: int, beams: int) -> BeamCall:
    """Draw another call at the same sizes."""
    for _ in range(20):
        script = draw_script(draw, batch=batch, new=3, ends=[], sizes=like.sizes)
        logits = np.round(draw.rng.normal(scale=1.5, size=script.logits.shape), 3)
        logits[..., like.sizes.target_pad] = RARE
        case = BeamCall(subject, script.but(logits=logits), beams)
        if is_steady(case, draw):
            return case
    raise Absent(f"{subject.precision} has near ties in every search that was drawn")


@check("decoding.beam-impossible-tokens", examples=4)
def test_beam_impossible_tokens(subject: Subject, draw: Draw) -> None:
    case = draw_beam_call(subject, draw, beams=2, ending=1.0, new=draw.integer(3, 5), ends_at=2)
    logits = np.full(case.script.logits.shape, -np.inf)
    order = (-case.script.logits).argsort(axis=-1)
    first = np.round(draw.rng.uniform(3.0, 5.0, size=(*logits.shape[:-1], 1)), 3)
    np.put_along_axis(logits, order[..., :1], first, axis=-1)  # two tokens are possible,
    np.put_along_axis(logits, order[..., 1:2], 0.0, axis=-1)  # and one of them is not likely
    possible = case.but(script=case.script.but(logits=logits))
    found = possible.found()
    holds(
        not np.isnan(found.scores).any() if found.scores is not None else True,
        "A score is not a number.",
        actual=found.scores,
    )
    values = possible.rescored(found.tokens)
    lost = int(np.isinf(values).sum())
    text = f"{lost} hypotheses contain a token of probability 0."
    holds(lost == 0, text, actual=found.tokens)
    best = possible.rescored(possible.expected().tokens)
    holds(
        bool((values[:, 0] >= best[:, 0] - case.tolerance).all()),
        "The first hypothesis is not the best one of the search.",
        actual=found.tokens,
    )
