"""Checks of the chapter `language_model`: a text that is given in chunks, with a cache."""

import numpy as np

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import single_steps
from attentest.suite.test_language_model.cached_cases import (
    COMPONENT,
    build,
    cached_sizes,
    draw_continued,
    drawn,
    matches_reference,
    with_steady_angles,
)
from attentest.suite.test_language_model.cases import GROUPS, with_shared_heads
from attentest.suite.test_model.cases import require_dropout, require_hiding
from attentest.testing import invariants
from attentest.testing.assertions import finite, holds, matches
from attentest.testing.common import (
    Call,
    dropout_off_in_evaluation,
    half_precisions,
    matches_in_precision,
    same_precision,
)
from attentest.testing.draw import LONG, Draw
from attentest.testing.refusal import require_index_errors
from attentest.testing.sizes_in_use import MANY, WIDE, SizesInUse, at_sizes_in_use
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Array


def _formula_in_use(subject: Subject, draw: Draw, size: SizesInUse) -> None:
    """Judge a prompt and one more token."""
    require_hiding(subject)
    sizes = with_steady_angles(subject, with_shared_heads(subject, size.sizes(subject)))
    chunks = [size.length - 1, 1] if size.length > 1 else [1]
    probe = build(subject, draw, sizes)
    matches_reference(draw_continued(draw, probe, chunks, rows=min(size.batch, 3)))


@check(
    "language_model.cached-formula",
    examples=3,
    in_use=at_sizes_in_use(_formula_in_use, WIDE, MANY),
)
def test_cached_formula(subject: Subject, draw: Draw) -> None:
    matches_reference(drawn(subject, draw, single_steps(draw.length(4, 7))))


@check("language_model.cached-chunks", examples=3)
def test_cached_chunks(subject: Subject, draw: Draw) -> None:
    length = draw.length(5, 8)
    whole = drawn(subject, draw, [length])
    expected = whole.output()
    for chunks in ([2, *single_steps(length - 2)], [1, 3, length - 4], [length - 2, 2]):
        case = whole.but(chunks=chunks)
        invariants.agree_up_to_rounding(
            case.probe,
            *case.inputs,
            actual=case.output(),
            expected=expected,
            what=f"output in chunks of {', '.join(map(str, chunks))}",
        )


@check("language_model.cached-window", examples=4)
def test_cached_window(subject: Subject, draw: Draw) -> None:
    if subject.choices.attention_window == "none":
        raise Absent(f"{subject.name} has no window")
    probe = build(subject, draw, cached_sizes(subject, draw))
    window = probe.sizes.window
    length = 2 * window + draw.integer(1, 3)
    for chunks in (
        single_steps(length),
        [window, *single_steps(length - window)],
        [window + 1, window - 1, length - 2 * window],
        [length - 2, 2],
    ):
        case = draw_continued(draw, probe, chunks)
        matches_reference(case, f"output with a window of {window}")


@check("language_model.cached-key-heads", examples=3)
def test_cached_key_heads(subject: Subject, draw: Draw) -> None:
    if subject.choices.key_heads != "fewer":
        raise Absent(f"every head of {subject.name} has keys of its own")
    if subject.limits.one_key_head:
        raise Absent(f"all heads of {subject.name} share one of keys")
    most = subject.limits.heads or 8
    shared = [pair for pair in GROUPS if pair[0] <= most and pair[1] > 1]
    if not shared:
        raise Absent(f"{subject.name} has no {most} heads that share several of keys")
    heads, kept = draw.choose(shared)
    sizes = cached_sizes(subject, draw, heads=heads, kv_heads=kept)
    chunks = draw.choose(([2, 1, 1, 2], single_steps(5)))
    what = f"output of {heads} heads over {kept} of keys"
    matches_reference(draw_continued(draw, build(subject, draw, sizes), chunks), what)


@check("language_model.cached-long", examples=2)
def test_cached_long(subject: Subject, draw: Draw) -> None:
    length = draw.long(37)
    case = drawn(subject, draw, single_steps(length), max_length=length)
    matches_reference(case, f"output of {length} steps")
    length = draw.long(LONG)
    case = drawn(subject, draw, [length - 3, 1, 1, 1], layers=1, max_length=length)
    matches_reference(case, f"output after {length - 3} tokens")


@check("language_model.cached-reorder", examples=4)
def test_cached_reorder(subject: Subject, draw: Draw) -> None:
    chunks = draw.choose(([2, 1, 1, 1, 1], single_steps(5), [3, 1, 1, 2]))
    case = drawn(subject, draw, chunks, rows=5)
    case.tokens[:, 0] = draw.rng.permutation(max(5, case.probe.sizes.target_vocabulary))[:5]
    case.tokens[:, 0] %= case.probe.sizes.target_vocabulary
    orders = [[1, 1, 0, 4, 4], [0, 2, 4, 3, 1], [0, 1, 2, 3, 4], [2, 0, 1, 4, 3]]
    shuffled = [orders[int(number)] for number in draw.rng.permutation(len(chunks) - 2)]
    case = case.but(origin=[range(5), orders[0], *shuffled])
    matches_reference(case, "output after rows were reordered")


@check("language_model.cached-batch", examples=3)
def test_cached_batch(subject: Subject, draw: Draw) -> None:
    case = drawn(subject, draw, [draw.choose((2, 1)), 1, 1])
    whole = case.output()
    for number in range(len(whole)):
        alone = case.row(number)
        invariants.agree_up_to_rounding(
            case.probe,
            *alone.inputs,
            actual=whole[number : number + 1],
            expected=alone.output(),
            what=f"output of row {number} in its batch",
        )


@check("language_model.cached-shapes", examples=3)
def test_cached_shapes(subject: Subject, draw: Draw) -> None:
    for chunks in ([1], [2, 1], [1, 2]):
        case = drawn(subject, draw, chunks, rows=draw.choose((1, 2)))
        output = case.output()
        same_precision(case.probe, output)
        finite(output)


@check("language_model.cached-single-precision", examples=3)
def test_cached_single_precision(subject: Subject, draw: Draw) -> None:
    _in_precision(subject, draw, "float32")


@check("language_model.cached-half-precision", examples=2)
def test_cached_half_precision(subject: Subject, draw: Draw) -> None:
    for precision in half_precisions(subject):
        _in_precision(subject, draw, precision)


def _in_precision(subject: Subject, draw: Draw, precision: str) -> None:
    def make(wanted: str) -> Call:
        sizes = cached_sizes(subject, draw, layers=1)
        probe = build(subject, draw, sizes, precision=wanted)
        return probe, draw_continued(draw, probe, [2, 1, 1]).inputs

    matches_in_precision(make, precision)


@check("language_model.cached-dropout-off", examples=2)
def test_cached_dropout_off(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    case = drawn(subject, draw, [2, 1, 1], layers=1)
    dropout_off_in_evaluation(subject, draw, COMPONENT, case.probe.sizes, *case.inputs)


@check("language_model.cached-beyond-length", examples=2)
def test_cached_beyond_length(subject: Subject, draw: Draw) -> None:
    require_index_errors(subject)
    limit = subject.limits.length
    most = draw.integer(3, min(5, limit or 5)) if limit is None or limit >= 3 else limit
    case = drawn(subject, draw, [most - 1, 1, 1], max_length=most)
    try:
        actual: Array = np.asarray(case.probe.output(*case.inputs))
    except (Absent, BackendError):
        return
    learned = learned_positions(subject.choices)
    holds(not learned, f"The position {most} was not refused, and {most} positions were learned.")
    matches(case.probe, *case.inputs, actual=actual, what=f"output beyond {most} positions")
