"""Names and sizes that the checks of the chapter `encoder` share."""

from attentest.harness.subject import Subject
from attentest.testing.draw import Draw

LAYER = "encoder_layer"
STACK = "encoder"

LAST = ("self_attention.output", "feed_forward.outer")
"""The last linear map of each sublayer."""


def scale(subject: Subject, draw: Draw) -> float:
    """Draw the magnitude of x; 1 in coarse precisions, where large scores are ill-conditioned."""
    return draw.scale() if subject.precision == "float64" else 1.0
