"""Checks of the chapter `model`: refusal of invalid input."""

from collections.abc import Callable

from attentest.harness.errors import BackendError
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_model.cases import ModelCall, draw_call
from attentest.testing.assertions import holds, matches
from attentest.testing.draw import Draw
from attentest.testing.refusal import refuses
from attentest_spec import Sizes
from attentest_spec.parameters import learned_positions, one_vocabulary
from attentest_spec.setting import Array


@check("model.out-of-range-refused", examples=2)
def test_out_of_range_refused(subject: Subject, draw: Draw) -> None:
    _refuses_ids(_with_the_last_ids(subject, draw), draw)


@check("model.out-of-range-named", examples=2)
def test_out_of_range_named(subject: Subject, draw: Draw) -> None:
    _refuses_ids(_with_the_last_ids(subject, draw), draw, named=True)


_UNLIKE = ((11, 13), (13, 11))


def _with_the_last_ids(subject: Subject, draw: Draw) -> ModelCall:
    """Return sentences with the last id of either vocabulary, which are served."""
    vocabularies = (11, 11) if one_vocabulary(subject.choices) else draw.choose(_UNLIKE)
    source, target = vocabularies
    case = draw_call(subject, draw, source_vocabulary=source, target_vocabulary=target)
    case.source[-1, -1], case.target[-1, -1] = source - 1, target - 1
    case.output()
    return case


def _refuses_ids(case: ModelCall, draw: Draw, *, named: bool = False) -> None:
    """Demand that ids outside the vocabulary of their own side are refused, on either side."""
    sizes = case.sizes
    sides = {"source": sizes.source_vocabulary, "target": sizes.target_vocabulary}
    for side, vocabulary in sides.items():
        for wrong in (-1, vocabulary, vocabulary + draw.integer(1, 90)):
            tokens: Array = getattr(case, side).copy()
            place = tuple(draw.integer(0, extent - 1) for extent in tokens.shape)
            tokens[place] = wrong
            inputs = case.but(**{side: tokens}).inputs
            refuses(
                case.probe.subject,
                f"the {side} token {wrong} in a vocabulary of {vocabulary}",
                lambda inputs=inputs: case.probe.output(*inputs),  # type: ignore[misc]
                naming=(wrong,) if named else (),
            )


@check("model.too-long-input", examples=2)
def test_too_long_input(subject: Subject, draw: Draw) -> None:
    longest = draw.length(2, 5)
    lengths = (longest, draw.integer(1, longest))
    case = draw_call(subject, draw, lengths=lengths, max_length=longest)
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    case = case.but(target=draw.target(len(case.source), longest, case.sizes))
    matches(case.probe, *case.inputs, actual=case.output(), rows=case.real)
    _refuses_lengths(case, draw, longest)


def _refuses_lengths(case: ModelCall, draw: Draw, longest: int) -> None:
    """Demand that more than `longest` tokens are refused or served in full, on either side."""
    subject, sizes = case.probe.subject, case.sizes
    batch, length = len(case.source), longest + draw.integer(1, 2)
    if subject.limits.length is not None and length > subject.limits.length:
        return
    doing = f"a sentence of {length} tokens where the greatest length is {longest}"
    for longer in (
        case.but(source=draw.source(batch, length, sizes)),
        case.but(target=draw.target(batch, length, sizes)),
    ):
        _refused_or_served(subject, doing, lambda longer=longer: longer, length)  # type: ignore[misc]


def _refused_or_served(
    subject: Subject, doing: str, make: Callable[[], ModelCall], number: int
) -> None:
    """Demand a refusal that names `number`, or the whole answer where positions have no end."""
    try:
        case = make()
        actual = case.output()
    except BackendError:
        refuses(subject, doing, lambda: make().output(), naming=(number,))
        return
    learned = learned_positions(subject.choices)
    holds(not learned, f"{doing} was not refused, and there are no positions to learn beyond it.")
    matches(case.probe, *case.inputs, actual=actual, rows=case.real, what=f"output for {doing}")


@check("model.impossible-sizes-refused", examples=1)
def test_impossible_sizes_refused(subject: Subject, draw: Draw) -> None:
    longest = min(subject.limits.length or 4, 4)
    case = draw_call(subject, draw, lengths=(longest, longest), max_length=longest)
    for changes, naming in _impossible(subject, case.sizes):
        text = ", ".join(f"{name} {value}" for name, value in changes.items())
        sizes = case.sizes.but(**changes)
        refuses(
            subject,
            f"building a model with {text}",
            lambda sizes=sizes: subject.part("model", sizes),  # type: ignore[misc]
            naming=naming,
        )
    for useless in (0, -2):
        _without_length(case, useless)


def _without_length(case: ModelCall, longest: int) -> None:
    """Demand that a greatest length of `longest` is refused, or means nothing to the model."""
    subject, sizes = case.probe.subject, case.sizes.but(max_length=longest)

    def make() -> ModelCall:
        probe = subject.part("model", sizes)
        if not learned_positions(subject.choices):
            probe.load(case.probe.parameters)
        return case.but(probe=probe)

    doing = f"building a model with max_length {longest}"
    _refused_or_served(subject, doing, make, longest)


Change = tuple[dict[str, float], tuple[float, ...]]
"""Sizes that cannot be, and the numbers among them that a refusal must name."""


def _impossible(subject: Subject, sizes: Sizes) -> list[Change]:
    """Return changes of `sizes` that each make a model impossible."""
    tables = ("source_vocabulary", "target_vocabulary")
    single = ("d_model", "heads", "d_ff", "layers", *tables)
    wrong: list[Change] = [({name: size}, (size,)) for name in single for size in (0, -1, -4)]
    wrong += [(dict.fromkeys(tables, size), (size,)) for size in (0, -3)]
    heads = 2 if (subject.limits.heads or 2) >= 2 else 1
    if subject.choices.head_width == "d/h" and heads > 1:
        wrong += [({"d_model": 7, "heads": 2}, (7, 2)), ({"d_model": 2, "heads": 4}, (2, 4))]
    if subject.limits.dropout:
        wrong += [({"dropout": rate}, (rate,)) for rate in (-0.25, 1.5)]
        wrong.append(({"dropout": 1.0}, ()))
    return wrong
