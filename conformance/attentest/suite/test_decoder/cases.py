"""What several modules of checks of the chapter `decoder` need."""

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
    """Demand a real answer: another memory moves the output."""
    other = case.but(memory=case.decoder_memory + 1.0 + draw.floats(*case.decoder_memory.shape))
    moved = (as_floats(other.output()) != as_floats(before))[case.rows]
    told = case.probe.precision not in HALF_PRECISIONS  # a narrow norm may round all to the same
    holds(moved.any() or not told, "Another memory leaves the output as it is.")
