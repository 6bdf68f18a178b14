"""Views of the parts of training: curves over the steps of a run."""

import numpy as np
from kinds import CURVES
from views import SIZES, View

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
