"""Positions of a whole model that begin behind its id of padding, which this spec does not have."""

from collections.abc import Mapping

from attentest.analysis.identify.measure import fits_at
from attentest.targets.adapt.reading import Unclear
from attentest_spec import Backend, Choices
from attentest_spec.choices import Value

_PAD = 4
"""An id of padding that is not the one of measuring."""


def demand_one_offset(name: str, backend: Backend, choices: Mapping[str, Value]) -> None:
    """Raise Unclear for a model whose first position depends on the id of padding.

    Such code counts the tokens that are no padding, and leaves the position of padding free.
    """
    known = Choices.of(choices)
    if known.position_offset == "none":
        return
    pads = {"source_pad": _PAD, "target_pad": _PAD}
    behind = known.but(position_offset=float(_PAD + 1))
    if fits_at(backend, known, **pads) is False and fits_at(backend, behind, **pads):
        raise Unclear(
            f"The positions of {name} begin behind the id of padding, and are counted by its "
            f"tokens: this spec has one offset, whatever that id is. Name the classes of its "
            f"parts, one by one."
        )
