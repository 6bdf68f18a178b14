"""Names and assertions that the checks of the chapter `decoder` share."""

from attentest.harness.tolerances import as_floats
from attentest.testing.assertions import holds
from attentest.testing.common import HALF_PRECISIONS
from attentest.testing.draw import Draw
from attentest.testing.layer_calls import LayerCall
from attentest_spec.setting import Array

LAYER = "decoder_layer"
STACK = "decoder"

LAST = ("self_attention.output", "cross_attention.output", "feed_forward.outer")
"""The last linear map of each sublayer."""

TARGET = ("target", "causal")
PADDED = ("target",)
FREE = ("none",)


def depends_on_any_memory(draw: Draw, case: LayerCall, before: Array) -> None:
    """Demand that the output depends on the memory."""
    other = case.but(memory=case.decoder_memory + 1.0 + draw.floats(*case.decoder_memory.shape))
    changed = (as_floats(other.output()) != as_floats(before))[case.rows]
    exact = case.probe.precision not in HALF_PRECISIONS  # a narrow norm may round all to the same
    holds(changed.any() or not exact, "The output does not depend on the memory.")
