"""Views of the parts of training: curves over the steps of a run."""

import numpy as np
from kinds import CURVES, TABLE
from views import SIZES, Ask, View, numbers

from attentest_spec.setting import Array

STEPS = np.arange(1, 42)

RATES = View(
    component="learning_rate",
    look=lambda ask: np.array([[float(ask(int(step)))] for step in STEPS]),
    kind=CURVES,
    rows="rate",
    columns="step",
    about="The learning rate of 41 steps, with a warm-up of 8 steps.",
    sizes=SIZES.but(d_model=16, heads=1, warmup=8, total_steps=60, factor=10.0),
    across=STEPS,
)

_RUN = np.concatenate([np.ones((1, 3)), np.full((29, 3), 0.25)]) * np.array([1.0, -0.5, 1e-8])

UPDATES = View(
    component="optimiser",
    look=lambda ask: np.asarray(ask(np.zeros(3), _RUN, np.full(30, 0.1))),
    kind=CURVES,
    rows="parameter",
    columns="update",
    about="Three parameters over 30 updates; the first gradient is four times as large as the "
    "others, and those of one parameter are about 1e-8.",
    across=np.arange(1, 31),
)

_GRADIENTS = numbers(6, seed=3) * np.array([1.0, 3.0, 1.0, 0.3, 1.0, 5.0])


def _clipped(limit: float) -> View:
    def look(ask: Ask) -> Array:
        found = np.asarray(ask(_GRADIENTS, np.array([2, 2, 2]), np.array(limit)))
        return found.reshape(3, 2)

    return View(
        component="gradient_clipping",
        look=look,
        kind=TABLE,
        rows="array",
        columns="gradient",
        about=f"The gradients of three arrays, clipped to a norm of {limit:g}.",
    )


CLIPPED, UNCLIPPED = _clipped(1.0), _clipped(100.0)
