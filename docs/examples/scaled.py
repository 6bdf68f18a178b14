"""The same attention with the mistake corrected."""

import math

from torch import Tensor

from attentest_spec.torch import of_function


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return softmax(query key^T / sqrt(E)) value and the weights."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(-1)
    return weights @ value, weights


backend = of_function(attend, "attention")
