"""Attention with a trained number for each bucket of distances, whose sizes no argument says."""

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.reading import Unclear
from attentest_spec.mapping import Table

_SIZES = ("bias_buckets", "bias_distance")
"""The number of buckets, and the distance from which on all are in the last one."""


def demand_buckets(code: Code, table: Table) -> None:
    """Raise Unclear where the buckets of attention are fixed: others are judged."""
    missing = [one for one in _SIZES if one not in code.known]
    if "relative_bias.weight" in table and missing:
        words = {"bias_buckets": "the number of buckets", "bias_distance": "the greatest distance"}
        said = " and ".join(words[one] for one in missing)
        options = " ".join(f"--argument {one}=NAME" for one in missing)
        raise Unclear(
            f"{code.name} has a trained number for each bucket of distances and each head, and no "
            f"argument of its constructor is known to be {said}: {options} says which one is. "
            f"Attention in which it is a constant is not judged."
        )
