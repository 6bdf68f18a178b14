"""Views of the first numbers of a model, in the order of their size."""

import numpy as np
from kinds import CURVES
from views import View

from attentest_spec import Sizes

SMALL_MODEL = Sizes(
    d_model=16, heads=2, d_ff=40, source_vocabulary=24, target_vocabulary=24, source_pad=3
)


def _sorted(name: str, count: int, about: str, row: int | None = None) -> View:
    """Return a view of the `count` numbers of a parameter, or of one `row` of it."""
    part = ... if row is None else row
    return View(
        component="model",
        look=lambda ask: np.sort(np.asarray(ask(name))[part], axis=None)[:, None],
        kind=CURVES,
        rows="number",
        columns="its share of the numbers in order",
        about=about,
        sizes=SMALL_MODEL,
        initial=True,
        across=np.linspace(0.0, 1.0, count),
    )


INNER = _sorted(
    "encoder.layers.0.feed_forward.inner.weight", 640, "The numbers of a matrix, sorted."
)
OUTER = _sorted(
    "encoder.layers.0.feed_forward.outer.weight",
    640,
    "The numbers of the last matrix of a sublayer, sorted.",
)
QUERY = _sorted(
    "encoder.layers.0.self_attention.query.weight", 256, "The numbers of a projection, sorted."
)
GAIN = _sorted("encoder.layers.0.feed_forward_norm.gain", 16, "The gains of a norm, sorted.")
PAD_ROW = _sorted(
    "source_embedding.weight", 16, "The row of the pad id in the source embedding, sorted.", row=3
)
