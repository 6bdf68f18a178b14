"""Models that raise where source and target differ in length: asked about, and judged anyway."""

from dataclasses import replace

from attentest.targets.adapt.reading import Reading
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.models.lengths import DIFFERENT_LENGTHS
from attentest.targets.models.trials import Building


def inferred_of_equal_lengths(
    built: Building, name: str, doc: str, reading: Reading
) -> tuple[Building, Inferred] | None:
    """Return how a model is called with equal lengths, which is judged with others all the same.

    None where nothing says that it is: what it computes is measured by calls whose lengths differ,
    so that its choices, and the order of its parameters, stay unknown.
    """
    if not reading.anyway:
        return None
    doubts = (*built.doubts, DIFFERENT_LENGTHS.format(name))
    equal = replace(built, equal=True, doubts=doubts)
    return equal, infer(equal, name, doc, reading)
