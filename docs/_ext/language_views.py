"""Views of decoder-only models: the logits of one text, and of the second text of a batch."""

from collections.abc import Callable

import numpy as np
from kinds import VALUES
from views import SIZES, Ask, View

from attentest_spec.setting import Array

_TEXT = np.array([[5, 3, 6, 0, 2]])
_BATCH = np.array([[1, 4, 2, 2, 6], [0, 0, 5, 3, 6]])
_REAL = np.array([[True] * 5, [False, False, True, True, True]])
_PLACES = np.array([[3, 4, 5, 6, 7], [0, 0, 0, 2, 7]])


def _view(look: Callable[[Ask], Array], about: str) -> View:
    return View(
        component="language_model",
        look=look,
        kind=VALUES,
        rows="token",
        columns="logit",
        about=about,
        sizes=SIZES.but(d_model=8, heads=2),
        choices={"output": "logits"},
    )


TEXT = _view(lambda ask: np.asarray(ask(_TEXT, None, None))[0], "The logits of five tokens.")
PADDED = _view(
    lambda ask: np.asarray(ask(_BATCH, _REAL, _PLACES))[1, 2:],
    "The second text of a batch, three tokens at positions 0, 2 and 7, padded on the left.",
)
