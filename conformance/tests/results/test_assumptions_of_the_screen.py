"""The order of what is assumed on the first screen."""

from attentest.results.assumptions import assumptions
from attentest.results.run import Description
from attentest.targets.adapt.assumptions.choices import NO_FINAL_NORM

OTHERS = (
    "assumed activation=gelu, as measured: if you meant relu (the paper's), this is a mistake, and "
    "--strict reports it",
    "not judged: what Model makes of the output of its layers",
    "assumed that its rate of dropout is the argument p",
)


def test_missing_final_norm_is_listed_first() -> None:
    read = Description(inferred=("understood",), assumed=(*OTHERS, NO_FINAL_NORM))
    assert assumptions([read], ())[0] == NO_FINAL_NORM
