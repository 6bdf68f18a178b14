"""Models that raise where source and target differ in length: judged, or asked about."""

from dataclasses import replace

from attentest.targets.adapt.reading import Reading
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.models.lengths import DIFFERENT_LENGTHS, has_two_lengths
from attentest.targets.models.trials import Building


def inferred_of_equal_lengths(
    built: Building, name: str, doc: str, reading: Reading
) -> tuple[Building, Inferred] | None:
    """Return how a model is called with equal lengths that is meant for others, and raises there.

    None where equal lengths may be all that is meant: where it is not built with a length of each
    side, or one mask serves both.
    """
    if not (reading.anyway or has_two_lengths(built)):
        return None
    doubts = (*built.doubts, DIFFERENT_LENGTHS.format(name))
    equal = replace(built, equal=True, doubts=doubts)
    found = infer(equal, name, doc, reading)
    one_mask = len(found.call.every_argument.masks) == 1
    return None if one_mask and not reading.anyway else (equal, found)
