"""Checks of the chapter `language_model`: positions and padding of texts with a cache."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Subject
from attentest.judging.check import check
from attentest.suite.test_cache.cases import single_steps
from attentest.suite.test_language_model.cached_cases import (
    Continued,
    build,
    cached_sizes,
    draw_continued,
    drawn,
    from_starts,
    matches_reference,
)
from attentest.suite.test_language_model.cases import (
    from_first_token,
    given_kinds,
    require_mask,
    shows_declared,
    supported_kinds,
)
from attentest.testing.draw import Draw
from attentest_spec import Choices
from attentest_spec.setting import Array


@check("language_model.cached-positions", examples=3)
def test_cached_positions(subject: Subject, draw: Draw) -> None:
    _require_positions(subject)
    length = draw.length(5, 7)
    for chunks in (single_steps(length), draw.choose(([2, 1, length - 3], [1, 2, length - 3]))):
        matches_reference(drawn(subject, draw, chunks), "output with the positions of the cache")


@check("language_model.cached-positions-given", examples=4)
def test_cached_positions_given(subject: Subject, draw: Draw) -> None:
    _require_positions(subject)
    kind = next(one for one in given_kinds(subject) if one != "shared")
    chunks = draw.choose(([3, 1, 1], single_steps(4), [2, 2, 1]))
    case = drawn(subject, draw, chunks)
    case = case.but(positions=from_starts(draw, case, kind))
    matches_reference(case, "output at the positions that are given")
    _matches_reordered_prompts(subject, draw, case, kind)


def _matches_reordered_prompts(subject: Subject, draw: Draw, case: Continued, kind: str) -> None:
    """Demand the output after rows were exchanged: each goes on at the positions of its text."""
    if kind != "per-sample":
        return
    rows = len(case.tokens)
    order = np.roll(np.arange(rows), 1)
    start, positions = case.chunks[0], np.array(case.positions)
    positions[:, start:] = positions[order, start:]
    straight = [range(rows)] * (len(case.chunks) - 2)
    again = case.but(positions=positions, origin=[range(rows), order, *straight])
    matches_reference(again, "output at the positions of rows that were exchanged")


@check("language_model.cached-left-padding", examples=4)
def test_cached_left_padding(subject: Subject, draw: Draw) -> None:
    require_mask(subject, "left")
    chunks = draw.choose(([3, 1, 1], single_steps(5), [2, 2, 1]))
    case = _padded(subject, draw, chunks)
    mask = np.ones(case.tokens.shape, dtype=bool)
    for number in range(1, len(mask)):
        mask[number, : min(number, 2)] = False
    matches_reference(_at_own_positions(case.but(mask=mask)))


@check("language_model.cached-prompt-padding", examples=4)
def test_cached_prompt_padding(subject: Subject, draw: Draw) -> None:
    case = _padded(subject, draw, draw.choose(([3, 1, 1, 1], [4, 2, 1], [3, 2, 1])))
    case = _at_own_positions(case.but(mask=_prompt_mask(case)))
    matches_reference(case)
    rows = len(case.tokens)
    own = np.roll(np.arange(rows), 1)
    order = [range(rows), own, *[range(rows)] * (len(case.chunks) - 2)]
    again = case.but(origin=order)
    if case.positions is not None:
        positions, start = np.array(case.positions), case.chunks[0]
        positions[:, start:] = positions[own, start:]
        again = again.but(positions=positions)
    matches_reference(again, "output of padded rows that were exchanged")


@check("language_model.cached-padded-positions", examples=3)
def test_cached_padded_positions(subject: Subject, draw: Draw) -> None:
    _require_positions(subject)
    supported_kinds(subject, ("none",))
    case = _padded(subject, draw, [4, 1, 1])
    case = case.but(mask=_prompt_mask(case))
    if "padded_positions" in subject.declared:
        shows_declared(case, "padded_positions")
    else:
        matches_reference(case)


def _require_positions(subject: Subject) -> None:
    """End as absent where tokens have no positions."""
    if not _has_positions(subject.choices):
        raise Absent(f"{subject.name} has no positions")


def _has_positions(choices: Choices) -> bool:
    return choices.attention_rotary != "none" or choices.positional_encoding != "none"


def _padded(subject: Subject, draw: Draw, chunks: list[int]) -> Continued:
    """Draw a call of which some tokens can be hidden."""
    require_mask(subject)
    probe = build(subject, draw, cached_sizes(subject, draw))
    return draw_continued(draw, probe, chunks)


def _prompt_mask(case: Continued) -> Array:
    """Return a mask (B, T) with padding at the end of the first chunk of all rows but the first."""
    mask, end = np.ones(case.tokens.shape, dtype=bool), case.chunks[0]
    for number in range(1, len(mask)):
        mask[number, end - 1 - number % (end - 1) : end] = False
    return mask


def _at_own_positions(case: Continued) -> Continued:
    """Return the call with positions that count real tokens, where they can be given."""
    subject = case.probe.subject
    if "per-sample" in subject.limits.positions:
        return case.but(positions=from_first_token(np.asarray(case.mask)))
    if subject.choices.positional_encoding != "none":
        raise Absent(f"{subject.name} takes no positions of each row")
    return case
