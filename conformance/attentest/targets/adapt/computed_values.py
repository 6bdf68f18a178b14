"""Arguments whose values are computed from the other inputs: zeros, positions and epsilons."""

from collections.abc import Collection

import torch
from torch import Tensor

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON, SEGMENTS, words

ZEROS = "x * 0"
"""The expression of what a network is given for the rows that its result is added to."""

_ONE_SEGMENT = "tokens * 0"
"""The expression of segments of which all tokens are in the first one."""

_ADDED = words("residual residualinput residualstates skip shortcut")
"""The names of such rows."""

PLACES = words(
    "positions position positionids posids pos positionid posid inputpositions inputpos "
    "tokenpositions positionindices"
)
"""Positions of tokens, counted from 0."""

_OF_ROWS = {"multi_head_attention": "query", "encoder_layer": "x", "encoder": "x"}
"""The components that get positions, with the input that has so many."""

_EPSILONS = {"layer_norm": "1e-05", "rms_norm": "1e-06"}
"""The usual epsilon of a norm that is a function of it: every value is judged by one formula."""

MASKED_PLACES = words(
    "maskedpos maskedposition maskedpositions maskedplaces maskpos maskposition maskpositions "
    "maskedlmpositions maskedindex maskedindices maskedids"
)
"""Positions of the tokens that are to be guessed, which are chosen behind the layers."""


OTHER_IDS = frozenset({*SEGMENTS, *MASKED_PLACES, *PLACES} - {"pos"})
"""Arguments that are ids and no tokens; `pos` may be vectors, which are added to others."""


def other_ids(own: str, tokens: Tensor) -> Tensor:
    """Return what the argument `own` gets for `tokens` (B, L): their positions, or zeros."""
    if squashed(own) not in PLACES:
        return torch.zeros_like(tokens)
    return torch.arange(tokens.shape[1]).expand(tokens.shape)


def values_computed(component: str, needed: Collection[str]) -> dict[str, str]:
    """Return the `needed` arguments that get zeros, positions or an epsilon, as expressions.

    They are rows of a network, segments of embeddings, and positions of sequences, of the shape
    (1, L), which serve as those of each sample and as those of all.
    """
    if component in _EPSILONS:
        return {own: _EPSILONS[component] for own in needed if squashed(own) in EPSILON}
    if component == "embedding":
        return {own: _ONE_SEGMENT for own in needed if squashed(own) in SEGMENTS}
    if component in _OF_ROWS:
        rows = f"torch.arange({_OF_ROWS[component]}.shape[1], device={_OF_ROWS[component]}.device)"
        return {own: f"{rows}[None]" for own in needed if squashed(own) in PLACES}
    found = [own for own in needed if squashed(own) in _ADDED]
    return dict.fromkeys(found[:1], ZEROS) if component == "feed_forward" else {}
