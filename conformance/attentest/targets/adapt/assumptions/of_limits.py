"""Sentences on limits of code that may be mistakes."""

from attentest_spec import Limits

_FIXED_DROPOUT = (
    "assumed that the rate of some dropout is fixed, as training at a rate of 0 shows: if it is "
    "meant to follow an argument, this is a mistake, and --strict reports it"
)
_SEVERAL = (
    "assumed that one head is another design: it is refused, or some parameters are left out. It "
    "is judged with two heads and more"
)


def of_limits(limits: Limits) -> list[str]:
    """Return what is assumed of fixed dropout, and of heads of which there are several."""
    return [_FIXED_DROPOUT] * limits.fixed_dropout + [_SEVERAL] * (limits.fewest_heads > 1)
