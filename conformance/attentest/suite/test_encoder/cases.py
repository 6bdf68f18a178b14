"""What several modules of checks of the chapter `encoder` need."""

from attentest.harness.subject import Subject
from attentest.testing.draw import Draw

LAYER = "encoder_layer"
STACK = "encoder"

LAST = ("self_attention.output", "feed_forward.outer")
"""The last linear map of each sublayer."""


def scale(subject: Subject, draw: Draw) -> float:
    """Draw the size of x; a softmax of large scores is a matter of luck in few digits."""
    return draw.scale() if subject.precision == "float64" else 1.0
