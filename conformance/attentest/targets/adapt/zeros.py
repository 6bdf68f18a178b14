"""The argument of a network that carries the rows which its result is added to."""

from collections.abc import Collection

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words

ZEROS = "x * 0"
"""The expression of what it is given."""

_ADDED = words("residual residualinput residualstates skip shortcut")
"""Its names."""


def given_zeros(component: str, needed: Collection[str]) -> dict[str, str]:
    """Return the one of the `needed` arguments of a network that carries such rows, with zeros."""
    found = [own for own in needed if squashed(own) in _ADDED]
    return dict.fromkeys(found[:1], ZEROS) if component == "feed_forward" else {}
