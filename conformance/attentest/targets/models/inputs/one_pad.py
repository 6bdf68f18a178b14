"""Ids of padding that parts of a model take by one name: they may be one id for both sides."""

import re
from dataclasses import replace

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.models.size_names import side_of
from attentest.targets.models.trials import Building

_ONE_ID = (
    "assumed that {} is one id of padding for source and target, as several parts take it by that "
    "name, and masks hide the padding of both sides with one id alone"
)
_PADS = re.compile(r"\b(\w+)=sizes\.(source|target)_pad\b")


def with_one_pad(
    built: Building, inferred: Inferred, name: str, doc: str, reading: Reading
) -> tuple[Building, Inferred]:
    """Return a model with one id of padding for both sides, where it hides more of it then.

    So it is where the encoder and the decoder each take an id by one name, and the decoder hides
    tokens of the source by its own.
    """
    found = _PADS.findall(built.expression)
    names = {own for own, _ in found}
    sides = {side for _, side in found}
    is_sure = inferred.masks_are_shown or reading.strict or reading.anyway
    if is_sure or len(names) != 1 or sides != {"source", "target"} or _has_side(*names):
        return built, inferred
    said = _ONE_ID.format(*names)
    other = replace(
        built,
        expression=built.expression.replace("sizes.target_pad", "sizes.source_pad"),
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )
    try:
        read = infer(other, name, doc, reading)
    except Unclear:
        return built, inferred
    return (other, read) if read.masks_are_shown else (built, inferred)


def _has_side(own: str) -> bool:
    """Say whether a name is that of the padding of one side."""
    words = own.lower().replace("_", "")
    is_source = re.match(r"(src|source|enc|inp)", words) is not None
    return is_source or side_of(words, "") == "target"
