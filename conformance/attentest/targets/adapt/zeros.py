"""Arguments that are given zeros: rows that a result is added to, and ids of one segment."""

from collections.abc import Collection

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import SEGMENTS, words

ZEROS = "x * 0"
"""The expression of what a network is given for the rows that its result is added to."""

_ONE_SEGMENT = "tokens * 0"
"""The expression of segments of which all tokens are in the first one."""

_ADDED = words("residual residualinput residualstates skip shortcut")
"""The names of such rows."""
MASKED_PLACES = words(
    "maskedpos maskedposition maskedpositions maskedplaces maskpos maskposition maskpositions "
    "maskedlmpositions maskedindex maskedindices maskedids"
)
"""Positions of the tokens that are to be guessed, which are chosen behind the layers."""


def given_zeros(component: str, needed: Collection[str]) -> dict[str, str]:
    """Return the `needed` arguments that get zeros: rows of a network, segments of embeddings."""
    if component == "embedding":
        return {own: _ONE_SEGMENT for own in needed if squashed(own) in SEGMENTS}
    found = [own for own in needed if squashed(own) in _ADDED]
    return dict.fromkeys(found[:1], ZEROS) if component == "feed_forward" else {}
