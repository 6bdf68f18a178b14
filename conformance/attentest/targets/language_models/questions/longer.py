"""Texts beyond the greatest length of a decoder-only model, which some compute in another way."""

import re

import numpy as np

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.adapt.rotary.longer import places_beyond
from attentest.targets.language_models.construction.building import Building
from attentest.targets.language_models.verifying import TRIED, answers, drawn
from attentest_spec import Backend, Choices
from attentest_spec.language_model import language_model
from attentest_spec.parameters import learned_positions
from attentest_spec.setting import Floats

_GREATEST, _LONGER = 6, 9
"""The greatest length that a model is built for, and that of the text which it is given."""

_CLOSE = 1e-5
"""The relative difference of numbers that rounding in single precision makes."""

_ENOUGH = 4096
"""A greatest length that no text of a clause has, and for which tables are still small."""


def demand_same_beyond(name: str, backend: Backend, building: Building, reading: Reading) -> None:
    """Raise Unclear for a model that computes longer texts by no rule that could be a mistake.

    Positions that begin anew or stay at the last one are mistakes, and are judged. Another scaling
    of rotary positions or of scores, by the length of a text, is a design of published models.
    """
    own = _argument(building)
    choices = Choices.of(backend.choices)
    limit = backend.limits.length
    if not own or reading.anyway or learned_positions(choices) or (limit and limit < _LONGER):
        return
    given = drawn(backend, TRIED[0].but(max_length=_GREATEST))
    sizes = given.sizes
    tokens = np.random.default_rng(2).integers(0, sizes.target_vocabulary, size=(2, _LONGER))
    try:
        (actual,) = answers(backend, given, [(tokens, None, None)])
    except Exception:  # code that a user wrote may raise anything, and may refuse the text
        return
    if actual.shape[:2] != tokens.shape:
        return
    beyond = places_beyond(len(tokens), _LONGER, sizes.max_length)
    known = (language_model(given, tokens, None, one) for one in beyond)
    if any(_alike(actual, one) for one in known):
        return
    raise Unclear(
        f"{name} computes a text of {_LONGER} tokens otherwise than the reference where {own} is "
        f"{sizes.max_length}, and shorter ones alike. Either that is a mistake, or a design that "
        f"changes with the length, such as dynamic scaling of rotary positions, which is not "
        f"specified. --give {own}={_ENOUGH} (in Python: given={{{own!r}: {_ENOUGH}}}) judges it "
        f"with a length that no text has."
    )


def _argument(building: Building) -> str:
    """Return the argument that carries the greatest length, "" for none."""
    found = re.search(r"(\w+)=sizes\.max_length\b", building.expression)
    return found[1] if found else ""


def _alike(actual: Floats, expected: Floats) -> bool:
    return bool(np.abs(actual - expected).max() <= _CLOSE * np.abs(expected).max())
