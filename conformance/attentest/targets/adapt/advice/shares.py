"""Networks that may be no part of a Transformer: what they return are shares, as probabilities."""

from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import Probe


def of_shares(code: Code, probe: Probe, adapter: Adapter) -> list[str]:
    """Return the doubt of a network that has a width of its own for its output, which are shares.

    They are between 0 and 1, as the probabilities of a classifier.
    """
    fillings = code.construction.fillings if code.construction else {}
    widths = [own for own, one in fillings.items() if one.settles == {"d_model"}]
    if code.component != "feed_forward" or len(widths) < 2:
        return []
    found = probe.called(adapter, probe.given(adapter))
    if not isinstance(found, Tensor) or bool(((found < 0) | (found > 1)).any()):
        return []
    return [f"{widths[-1]} is a width of its own for what it returns, all of it between 0 and 1"]
