"""Example inputs of the components that decode: the scores of a scripted model, and logits."""

import numpy as np

from attentest_spec import Choices, Sizes
from attentest_spec.contract import Input
from attentest_spec.generator import normalised

DECODING = ("greedy_decoding", "beam_search", "sampling")
"""The components whose inputs are scores of tokens."""

STEPWISE = (*DECODING, "cached_decoding", "cached_language_model")
"""The components that decode; none of their inputs are those of another component."""

_NEW = 4


def scripted_inputs(
    component: str, sizes: Sizes, choices: Choices, seed: int = 0
) -> tuple[Input, ...]:
    """Return inputs of one of :data:`DECODING`: two sequences, of which one ends.

    Scores are of the declared kind, and have the shape (2, L, V, V); logits have the shape (2, V).
    """
    rng = np.random.default_rng(seed)
    ids = sizes.target_vocabulary
    if component == "sampling":
        return (np.round(rng.normal(scale=2.0, size=(2, ids)), 2),)
    logits = np.round(rng.normal(scale=1.5, size=(2, _NEW + 1, ids, ids)), 2)
    logits[0, 1, :, sizes.end] = 6.0
    logits[..., sizes.target_pad] = -9.0
    begin = np.full((2, 1), sizes.start)
    rest = (3,) if component == "beam_search" else ()
    return (normalised(choices.output, logits), begin, _NEW + 1, *rest)
