"""Code that does more than its component: the ways to judge it without the rest."""

from collections.abc import Iterator

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.placed import without_positions
from attentest.targets.adapt.wrappers.scaled import without_scale
from attentest.targets.adapt.wrappers.summed import without_sums


def without_the_rest(
    code: Code, probe: Probe, adapter: Adapter, reading: Reading
) -> Iterator[Code]:
    """Yield `code` without the positions, the other tables or the scale that it has besides."""
    yield from without_positions(code, probe, reading)
    yield from without_sums(code, probe, reading)
    yield from without_scale(code, probe, adapter, reading)
