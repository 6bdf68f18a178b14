"""Checks of the chapter `model`: refusal of invalid input."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from attentest.harness.errors import Absent, BackendError
from attentest.harness.subject import Probe, Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import ModelCall, draw_call
from attentest.testing.assertions import holds, matches
from attentest.testing.draw import Draw
from attentest.testing.refusal import explains_refusal, refused_by, refuses, require_index_errors
from attentest_spec import Sizes
from attentest_spec.parameters import learned_positions, one_vocabulary
from attentest_spec.setting import Array


@check("model.out-of-range-refused", examples=2)
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    for doing, action, wrong in _foreign_ids(_with_the_last_ids(subject, draw), draw):
        if wrong >= 0:
            refuses(subject, doing, action)


@check("model.negative-id-refused", examples=2)
def test_negative_id_refused(subject: Subject, draw: Draw) -> None:
    for doing, action, wrong in _foreign_ids(_with_the_last_ids(subject, draw), draw):
        if wrong < 0:
            refuses(subject, doing, action)


@check("model.out-of-range-named", examples=2)
def test_out_of_range_named(subject: Subject, draw: Draw) -> None:
    for doing, action, wrong in _foreign_ids(_with_the_last_ids(subject, draw), draw):
        explains_refusal(subject, doing, action, naming=(wrong,))


_UNLIKE = ((11, 13), (13, 11))


def _with_the_last_ids(subject: Subject, draw: Draw) -> ModelCall:
    """Return sentences with the last id of either vocabulary, which are served."""
    require_index_errors(subject)
    shared = one_vocabulary(subject.choices) or not subject.limits.own_vocabularies
    vocabularies = (11, 11) if shared else draw.choose(_UNLIKE)
    source, target = vocabularies
    case = draw_call(subject, draw, source_vocabulary=source, target_vocabulary=target)
    case.source[-1, 0] = case.sizes.source_vocabulary - 1  # before padding, wherever that is
    case.target[-1, 0] = case.sizes.target_vocabulary - 1
    case.output()
    return case


def _foreign_ids(case: ModelCall, draw: Draw) -> Iterator[tuple[str, Callable[[], Array], int]]:
    """Yield in words and as an action a call with each id that is outside the vocabulary."""
    sizes = case.sizes
    sides = {"source": sizes.source_vocabulary, "target": sizes.target_vocabulary}
    for side, vocabulary in sides.items():
        for wrong in (-1, vocabulary, vocabulary + draw.integer(1, 90)):
            tokens: Array = getattr(case, side).copy()
            row, column = (draw.integer(0, extent - 1) for extent in tokens.shape)
            ends = case.probe.subject.limits.right_padded
            tokens[row, 0 if side in ends else column] = wrong  # behind padding, no token is right
            inputs = case.but(**{side: tokens}).inputs
            doing = f"the {side} token {wrong} in a vocabulary of {vocabulary}"
            yield doing, partial(case.probe.output, *inputs), wrong


@check("model.too-long-input", examples=2)
def test_too_long_input(subject: Subject, draw: Draw) -> None:
    case = _longest(subject, draw)
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    case = case.but(target=draw.target(len(case.source), case.sizes.max_length, case.sizes))
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    for doing, longer, _ in _too_long(case, draw):
        try:
            actual = longer.output()
        except BackendError:
            continue
        _served(longer, actual, doing)


@check("model.too-long-input-named", examples=2)
def test_too_long_input_named(subject: Subject, draw: Draw) -> None:
    for doing, longer, length in _too_long(_longest(subject, draw), draw):
        explains_refusal(subject, doing, longer.output, naming=(length,))


def _longest(subject: Subject, draw: Draw) -> ModelCall:
    """Draw a call whose source has the greatest length."""
    require_index_errors(subject)
    longest = draw.length(2, 5)
    lengths = (longest, draw.integer(1, longest))
    return draw_call(subject, draw, lengths=lengths, max_length=longest)


def _too_long(case: ModelCall, draw: Draw) -> Iterator[tuple[str, ModelCall, int]]:
    """Yield in words and as a call a sequence on either side that is too long, and its length."""
    limit, sizes = case.probe.subject.limits.length, case.sizes
    batch, length = len(case.source), sizes.max_length + draw.integer(1, 2)
    if limit is not None and length > limit:
        return
    doing = f"a sequence of {length} tokens where the greatest length is {sizes.max_length}"
    yield doing, case.but(source=draw.source(batch, length, sizes)), length
    yield doing, case.but(target=draw.target(batch, length, sizes)), length


def _served(case: ModelCall, actual: Array, doing: str) -> None:
    """Demand the whole answer, which no table of learned positions has."""
    learned = learned_positions(case.probe.subject.choices)
    holds(not learned, f"{doing} was not refused, and there are no positions to learn beyond it.")
    matches(case.probe, *case.inputs, actual=actual, rows=case.real, what=f"output for {doing}")


@check("model.indivisible-width-refused", examples=1)
def test_indivisible_width_refused(subject: Subject, draw: Draw) -> None:
    case = _possible(subject, draw)
    indivisible = _indivisible(subject)
    if not indivisible:
        raise Absent(f"{subject.name} divides no width among its heads")
    for doing, build, _ in _builds(subject, case.sizes, indivisible):
        refuses(subject, doing, partial(_answer, case, build))


@check("model.impossible-sizes-refused", examples=1)
def test_impossible_sizes_refused(subject: Subject, draw: Draw) -> None:
    case = _possible(subject, draw)
    for doing, build, _ in _builds(subject, case.sizes, _impossible(subject)):
        refuses(subject, doing, build)
    for useless in USELESS:
        answer, doing = _without_length(case, useless)
        try:
            actual = answer()
        except BackendError:
            continue
        _served(case, actual, doing)


@check("model.impossible-sizes-named", examples=1)
def test_impossible_sizes_named(subject: Subject, draw: Draw) -> None:
    case = _possible(subject, draw)
    for doing, build, naming in _builds(
        subject, case.sizes, [*_indivisible(subject), *_impossible(subject)]
    ):
        explains_refusal(subject, doing, build, naming=naming)
    for doing, build, _ in _builds(subject, case.sizes, _indivisible(subject)):
        refused_by(subject, doing, build, lambda probe: probe.output(*case.inputs))
    for useless in USELESS:
        answer, doing = _without_length(case, useless)
        explains_refusal(subject, doing, answer, naming=(useless,))


USELESS = (0, -2)
"""Greatest lengths at which there is no position."""


def _possible(subject: Subject, draw: Draw) -> ModelCall:
    longest = min(subject.limits.length or 4, 4)
    return draw_call(subject, draw, lengths=(longest, longest), max_length=longest)


Change = tuple[dict[str, float], tuple[float, ...]]
"""Sizes that cannot be, and the numbers among them that a refusal must name."""


def _builds(
    subject: Subject, possible: Sizes, wrong: Sequence[Change]
) -> Iterator[tuple[str, Callable[[], Probe], tuple[float, ...]]]:
    """Yield in words and as an action each impossible build, and the numbers that are to blame."""
    for changes, naming in wrong:
        text = ", ".join(f"{name} {value}" for name, value in changes.items())
        sizes = possible.but(**changes)
        yield f"building a model with {text}", partial(subject.part, "model", sizes), naming


def _answer(case: ModelCall, build: Callable[[], Probe]) -> Array:
    """Return the output of what `build` returns for the inputs of `case`."""
    return build().output(*case.inputs)


def _without_length(case: ModelCall, longest: int) -> tuple[Callable[[], Array], str]:
    """Return how a model with a greatest length of `longest` answers, and in words."""
    subject, sizes = case.probe.subject, case.sizes.but(max_length=longest)

    def answer() -> Array:
        probe = subject.part("model", sizes)
        if not learned_positions(subject.choices):
            probe.load(case.probe.parameters)
        return case.but(probe=probe).output()

    return answer, f"building a model with max_length {longest}"


def _indivisible(subject: Subject) -> list[Change]:
    """Return widths with numbers of heads that do not divide them, where that matters."""
    heads = 2 if (subject.limits.heads or 2) >= 2 else 1
    if subject.choices.head_width != "d/h" or heads == 1 or subject.limits.rounded_heads:
        return []
    return [({"d_model": 7, "heads": 2}, (7, 2)), ({"d_model": 2, "heads": 4}, (2, 4))]


def _impossible(subject: Subject) -> list[Change]:
    """Return sizes below 1 and dropout rates that are none."""
    tables = ("source_vocabulary", "target_vocabulary")
    own = tables if subject.limits.own_vocabularies else ()
    single = ("d_model", "heads", "d_ff", "layers", *own)
    wrong: list[Change] = [({name: size}, (size,)) for name in single for size in (0, -1, -4)]
    wrong += [(dict.fromkeys(tables, size), (size,)) for size in (0, -3)]
    if subject.limits.dropout:
        wrong += [({"dropout": rate}, (rate,)) for rate in (-0.25, 1.5)]
        wrong.append(({"dropout": 1.0}, ()))
    return wrong
