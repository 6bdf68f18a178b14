"""Checks of the chapter `decoding`: greedy decoding."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.suite.test_decoding.cases import (
    NEVER,
    RARE,
    Script,
    after_end,
    decodes,
    draw_ends,
    draw_script,
    draw_sizes,
    filling,
    greedy,
    require_stop,
    stops,
    wanted,
)
from attentest.testing.assertions import equal, holds
from attentest.testing.draw import Draw
from attentest_spec.decoding import next_scores
from attentest_spec.setting import Array, Setting


@check("decoding.greedy-formula", examples=5)
def test_greedy_formula(subject: Subject, draw: Draw) -> None:
    for script in (draw_script(draw), draw_script(draw, new=12, ends=[9, NEVER, 3], batch=3)):
        decodes(subject, script)


@check("decoding.greedy-own-choice", examples=4)
def test_greedy_own_choice(subject: Subject, draw: Draw) -> None:
    count, new = draw.batch(), draw.integer(3, 5)
    # A sequence that ends at once shows nothing of what the model is given.
    script = draw_script(draw, batch=count, new=new, ends=[NEVER, *draw_ends(draw, count - 1, new)])
    scores, setting = script.scores(subject), Setting(script.sizes, subject.choices)
    for sequence, tokens in enumerate(greedy(subject, script)):
        row = [int(one) for one in tokens]
        for place in range(script.given, script.length):
            if stops(subject) and script.sizes.end in row[script.given : place]:
                break
            best = int(next_scores(setting, scores[sequence], row[:place]).argmax())
            holds(
                row[place] == best,
                f"After the tokens {row[:place]} the best one is {best}, and {row[place]} is in "
                f"their place {place}.",
                actual=tokens,
            )


@check("decoding.last-position", examples=4)
def test_last_position(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, batch=2, new=draw.integer(4, 6), ends=[NEVER, NEVER])
    first = decodes(subject, script)
    other = draw_script(draw, sizes=script.sizes, batch=len(first), new=script.length - 1).logits
    for sequence, row in enumerate(first):  # what the decoded prefixes ask for stays
        tokens = row[row != script.sizes.target_pad]
        places = np.arange(len(tokens))
        other[sequence, places, tokens] = script.logits[sequence, places, tokens]
    again = greedy(subject, script.but(logits=other))
    equal(again, first, what="decoded tokens for other scores where no prefix leads to")


@check("decoding.begin-stays", examples=4)
def test_begin_stays(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw)
    words = [one for one in range(script.sizes.target_vocabulary) if one not in _special(script)]
    begin = draw.rng.choice(words, size=script.begin.shape).astype(np.int64)
    for one in (script, script.but(begin=begin)):
        tokens = greedy(subject, one)
        equal(tokens[:, : script.given], one.begin, what="given tokens in the result")
        equal(tokens, wanted(subject, one), what="decoded tokens")


def _special(script: Script) -> tuple[int, ...]:
    return script.sizes.end, script.sizes.target_pad


@check("decoding.exact-length", examples=4)
def test_exact_length(subject: Subject, draw: Draw) -> None:
    for new in (draw.integer(2, 6), 1):
        script = draw_script(draw, batch=2, new=new, ends=[NEVER, NEVER])
        tokens = decodes(subject, script)
        holds(not (tokens == script.sizes.target_pad).any(), "There is padding in the result.")
    nothing = script.but(length=script.given)
    equal(greedy(subject, nothing), script.begin, what="result where nothing is to be added")


@check("decoding.stop-at-end", examples=4)
def test_stop_at_end(subject: Subject, draw: Draw) -> None:
    new = draw.integer(3, 6)
    script = after_end(draw_script(draw, batch=1, new=new, ends=[draw.integer(1, new - 1)]))
    tokens = greedy(subject, script)
    options = {
        option: wanted(subject, script, choices=subject.choices.but(decoding_stop=option))
        for option in ("end-token", "length")
    }
    declared = subject.choices.decoding_stop
    shown = [option for option, other in options.items() if np.array_equal(tokens, other)]
    holds(
        not shown or shown == [declared],
        f"decoding_stop is declared as {declared}; the tokens show {' and '.join(shown)}.",
        actual=tokens,
    )
    end = int(tokens[0, 1:].tolist().index(script.sizes.end)) if script.sizes.end in tokens else -1
    after = tokens[0, end + 2 :]
    ended = end >= 0 and set(after.tolist()) <= set(_special(script))
    holds(
        ended if stops(subject) else bool((tokens == options["length"]).all()),
        f"decoding_stop is declared as {declared}; what follows the end token is {after.tolist()}.",
        actual=tokens,
        expected=options[str(declared)],
    )


@check("decoding.after-end", examples=4)
def test_after_end(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    new = draw.integer(3, 6)
    end = draw.integer(1, new - 2)
    script = after_end(draw_script(draw, batch=2, new=new, ends=[end, draw.integer(end + 1, new)]))
    tokens = greedy(subject, script)
    fill = filling(subject, script.sizes)
    for row in tokens[:, script.given :]:
        ends = np.flatnonzero(row == script.sizes.end)
        holds(len(ends) > 0, "There is no end token where it is the best one.", actual=tokens)
        rest = row[ends[0] + 1 :]
        holds(
            bool((rest == fill).all()),
            f"After the end token there are {sorted(set(rest.tolist()))}, and not {fill} alone.",
            actual=tokens,
        )


@check("decoding.finished-stay-finished", examples=4)
def test_finished_stay_finished(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    new = draw.integer(4, 7)
    ends = [1, NEVER, draw.integer(2, new - 2)]
    script = after_end(draw_script(draw, batch=3, new=new, ends=ends))
    decodes(subject, script, what="tokens of a batch in which sequences have ended")


@check("decoding.end-at-once", examples=4)
def test_end_at_once(subject: Subject, draw: Draw) -> None:
    require_stop(subject)
    for ends in ([1], [1, NEVER], [1, 1]):
        script = draw_script(draw, batch=len(ends), new=draw.integer(2, 4), ends=ends)
        decodes(subject, after_end(script), what="tokens where the end token comes at once")


@check("decoding.batch-independence", examples=4)
def test_batch_independence(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, batch=draw.choose((2, 3, 5)), new=draw.integer(2, 5))
    together = greedy(subject, script)
    for number in range(len(together)):
        alone = greedy(subject, script.rows(slice(number, number + 1)))
        what = f"decoded tokens of sequence {number} in a batch"
        equal(together[number : number + 1], alone, what=what)
    equal(together, wanted(subject, script), what="decoded tokens")


@check("decoding.any-ids", examples=4)
def test_any_ids(subject: Subject, draw: Draw) -> None:
    fixed = subject.limits.pad
    pad = 5 if fixed is None else fixed
    for end, start in ((4, 3), (3, 6), (7, 4)):
        named = {"target_pad": pad, "source_pad": pad, "start": start, "end": end}
        if len({pad, end, start}) < len(("pad", "end", "start")):
            continue
        sizes = draw_sizes(draw, vocabulary=9, **named)
        script = after_end(draw_script(draw, batch=3, new=6, ends=[5, NEVER, 4], sizes=sizes))
        low = script.logits.copy()
        best = low.max(axis=-1, keepdims=True)
        for number, word in enumerate((0, 1, 2)):  # the usual ids are words here
            if word != pad:
                low[:, number, :, word] = best[:, number, :, 0] + 1.0
        decodes(subject, script.but(logits=low), what=f"tokens for the ids {named}")


@check("decoding.prompt", examples=4)
def test_prompt(subject: Subject, draw: Draw) -> None:
    decodes(
        subject,
        draw_script(draw, given=draw.integer(2, 4), new=draw.integer(1, 4)),
        what="tokens after several given ones",
    )


def _padded(subject: Subject, draw: Draw, *, left: bool) -> tuple[Array, Array]:
    """Return what follows padded given tokens in a batch, and each of them without padding."""
    given, new = draw.integer(3, 5), draw.integer(1, 4)
    script = draw_script(draw, batch=3, given=given, new=new, ends=[NEVER] * 3)
    begin, counts = script.begin.copy(), (given, draw.integer(1, given - 1), 1)
    for row, count in zip(begin, counts, strict=True):
        kept = row[:count].copy()
        row[:] = script.sizes.target_pad
        (row[-count:] if left else row[:count])[:] = kept
    padded = script.but(begin=begin)
    alone = [
        greedy(
            subject, script.rows([n]).but(begin=script.begin[n : n + 1, :count], length=count + new)
        )
        for n, count in enumerate(counts)
    ]
    after = greedy(subject, padded)
    equal(after[:, :given], begin, what="padded given tokens in the result")
    return after[:, given:], np.concatenate([one[:, -new:] for one in alone])


@check("decoding.left-padding", examples=4)
def test_left_padding(subject: Subject, draw: Draw) -> None:
    after, alone = _padded(subject, draw, left=True)
    equal(after, alone, what="new tokens after padding on the left")


@check("decoding.right-padding", examples=4)
def test_right_padding(subject: Subject, draw: Draw) -> None:
    after, alone = _padded(subject, draw, left=False)
    equal(after, alone, what="new tokens after padding on the right")


@check("decoding.ties", examples=5)
def test_ties(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, batch=5, new=1, ends=[NEVER] * 5)
    words = [one for one in range(script.sizes.target_vocabulary) if one not in _special(script)]
    # Two ids are never one of them in sum, unless one is 0.
    words = [one for one in words if one != 0]
    equals = [draw.rng.choice(words, size=2 + row % 2, replace=False) for row in range(5)]
    logits = script.logits.copy()
    best = logits.max() + 1.0
    for row, ids in enumerate(equals):
        logits[row, ..., ids] = best
    tied = script.but(logits=logits)
    first = greedy(subject, tied)
    for token, ids in zip(first[:, -1], equals, strict=True):
        text = f"The tokens {sorted(ids.tolist())} are equally good, and {token} is taken."
        holds(token in ids, text, actual=first)
    for _ in range(3):
        equal(greedy(subject, tied), first, what="tokens of another call with equal scores")


@check("decoding.impossible-tokens", examples=4)
def test_impossible_tokens(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, new=draw.integer(2, 4))
    logits = script.logits.copy()
    worst = logits.argsort(axis=-1)[..., : logits.shape[-1] // 2]
    np.put_along_axis(logits, worst, -np.inf, axis=-1)
    decodes(subject, script.but(logits=logits), what="tokens where half are impossible")
    if subject.choices.output == "logits":
        large = script.but(logits=script.logits * 1000.0)
        decodes(subject, large, what="tokens for large logits")
        decodes(subject, script.but(logits=script.logits - 500.0), what="tokens for small logits")


@check("decoding.no-memory-of-calls", examples=4)
def test_no_memory_of_calls(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, batch=2, new=3)
    probe = subject.part("greedy_decoding", script.sizes)
    for batch in (2, 3, 1):
        other = draw_script(draw, batch=batch, new=draw.integer(3, 5), sizes=script.sizes)
        equal(greedy(subject, other, probe), wanted(subject, other), what="tokens of a later call")
    equal(greedy(subject, script, probe), wanted(subject, script), what="tokens of the last call")


@check("decoding.input-untouched", examples=4)
def test_input_untouched(subject: Subject, draw: Draw) -> None:
    decodes(subject, draw_script(draw))  # every call compares its inputs before and after


@check("decoding.token-type", examples=3)
def test_token_type(subject: Subject, draw: Draw) -> None:
    tokens = decodes(subject, draw_script(draw))
    holds(tokens.dtype == np.int64, f"The tokens are of the type {tokens.dtype}, not int64.")


@check("decoding.mode", examples=4)
def test_mode(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw, batch=2, new=3, ends=[NEVER, NEVER])
    logits = script.logits.copy()
    logits[..., script.logits.shape[-1] - 1 - script.sizes.target_pad] = RARE  # rare in reverse too
    script = script.but(logits=logits)
    answers = {
        "evaluation": wanted(subject, script),
        "as-given": wanted(subject, script.but(logits=logits[..., ::-1])),
    }
    probe = subject.part("greedy_decoding", script.sizes)
    equal(greedy(subject, script, probe), answers["evaluation"], what="tokens in evaluation mode")
    probe.train()
    tokens = greedy(subject, script, probe)
    shown = [option for option, other in answers.items() if np.array_equal(tokens, other)]
    declared = subject.choices.decoding_mode
    if len(shown) > 1:
        raise Absent("the tokens do not distinguish the modes")
    holds(
        shown == [declared],
        f"decoding_mode is declared as {declared}; the tokens show {' '.join(shown) or 'neither'}.",
        actual=tokens,
        expected=answers[str(declared)],
    )


@check("decoding.mode-comes-back", examples=2)
def test_mode_comes_back(subject: Subject, draw: Draw) -> None:
    script = draw_script(draw)
    probe = subject.part("greedy_decoding", script.sizes)
    for switch, training in ((probe.train, True), (probe.eval, False), (probe.train, True)):
        switch()
        greedy(subject, script, probe)
        wrong = [name for name, mode in _modes(probe).items() if mode != training]
        where = ", ".join(repr(name) for name in wrong)
        mode = "training" if training else "evaluation"
        holds(not wrong, f"After decoding in {mode} mode, another mode is that of {where}.")


def _modes(probe: Probe) -> dict[str, bool]:
    return dict(probe.do("listing what it holds", lambda part: part.inventory())["modes"])
