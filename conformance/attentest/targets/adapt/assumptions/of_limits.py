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
_UNTRAINED = (
    "assumed that {} is the padding that is meant: it is the `padding_idx` of tables in the code, "
    "whatever pad id the model is given; with any other one, this token is never trained, which is "
    "a mistake that --strict reports"
)


def of_limits(limits: Limits) -> list[str]:
    """Return what is assumed of fixed dropout, heads of which there are several, fixed pad ids."""
    rows = [_UNTRAINED.format(f"token {one}") for one in limits.untrained]
    return [_FIXED_DROPOUT] * limits.fixed_dropout + [_SEVERAL] * (limits.fewest_heads > 1) + rows
