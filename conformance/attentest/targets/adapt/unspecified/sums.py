"""Networks that are given the rows that their result is added to, as a second argument."""

from dataclasses import replace

from torch import Tensor, allclose

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.computed_values import ZEROS
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Unclear

SENTENCE = (
    "assumed that {} is what its result is added to, as a probing call shows: it is given zeros, "
    "and what is computed without it is judged"
)


def demand_sum(name: str, probe: Probe, adapter: Adapter) -> list[str]:
    """Return what is assumed of such an argument, if any; Unclear where it is not added."""
    own = next((one for one, code in adapter.arguments.computed.items() if code == ZEROS), "")
    if not own:
        return []
    given = probe.given(adapter)
    other = replace(adapter, arguments=replace(adapter.arguments, computed={own: "x * x"}))
    plain, added = probe.called(adapter, given), probe.called(other, given)
    x = given["x"]
    if not isinstance(plain, Tensor) or not isinstance(added, Tensor):
        return []
    if not allclose(added, plain + x * x, rtol=1e-4, atol=1e-5):
        raise Unclear(
            f"By its name {own} of {name} is what its result is added to, and a probing call shows "
            f"another sum. --as residual judges a residual connection, and --argument x=NAME says "
            f"which argument is the input."
        )
    return [SENTENCE.format(own)]
