"""Views of rotary positions: turned columns, and the scores of pairs of positions."""

from collections.abc import Callable

import numpy as np
from kinds import TABLE, VALUES
from views import SIZES, Ask, View

from attentest_spec.setting import Array

_TOKENS = 32
_ROW = np.array([1.0, 0.0])
"""The two columns of a pair, as they are at position 0."""


def _turned(ask: Ask, positions: Array, heads: int = 1) -> Array:
    """Return equal rows (B, H, T, 8), turned at the positions (B, T)."""
    x = np.tile(_ROW, 4) * np.ones((len(positions), heads, positions.shape[1], 1))
    return np.asarray(ask(x, positions))


def _view(look: Callable[[Ask], Array], about: str) -> View:
    return View(
        component="rotary",
        look=look,
        kind=TABLE,
        rows="column",
        columns="token",
        about=about,
        sizes=SIZES.but(d_model=8, heads=1, max_length=64),
    )


_FIRST = np.arange(_TOKENS)[None]

TURNED = _view(
    lambda ask: _turned(ask, _FIRST)[0, 0].T,
    "Equal rows of four pairs (1, 0), turned at 32 positions.",
)
TURNED_SECOND_HEAD = _view(
    lambda ask: _turned(ask, _FIRST, heads=2)[0, 1].T,
    "The second head of equal rows of four pairs (1, 0), turned at 32 positions.",
)
TURNED_SECOND = _view(
    lambda ask: _turned(ask, np.concatenate([_FIRST, _FIRST + 20]))[1, 0].T,
    "The second sequence of a batch, whose positions begin at 20.",
)


def _scores(ask: Ask) -> Array:
    """Return the products of a query and a key (8) at every two of 12 positions."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(2, 1, 1, 8)).round(1) * np.ones((2, 1, 12, 1))
    query, key = np.asarray(ask(rows, np.tile(np.arange(12), (2, 1))))[:, 0]
    return np.asarray(query @ key.T)


SCORES = View(
    component="rotary",
    look=_scores,
    kind=VALUES,
    rows="query",
    columns="key",
    about="The scores of one query and one key, moved to every two of 12 positions: they depend "
    "on the distance alone.",
    sizes=SIZES.but(d_model=8, heads=1, max_length=64),
)
