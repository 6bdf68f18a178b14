"""The paper's Table 1: what a layer of each type costs, in its symbols and in numbers.

n is the length, d the width, k the width of a convolution, r the size of a neighbourhood.
Source: section 4, Table 1. Constant factors are left out there, and here.
"""

from dataclasses import dataclass
from math import log

KERNEL = 3
NEIGHBOURHOOD = 32


@dataclass(frozen=True)
class LayerType:
    """One row of Table 1: the complexity per layer, sequential operations, longest path."""

    layer: str
    complexity: str
    operations: float
    sequential: str
    steps: float
    path: str
    longest: float


def layer_types(
    n: int, d: int, k: int = KERNEL, r: int = NEIGHBOURHOOD
) -> tuple[LayerType, LayerType, LayerType, LayerType]:
    """Return the rows of Table 1 at the length `n` and the width `d`.

    A neighbourhood is no larger than the sentence.
    """
    r = min(r, n)
    return (
        LayerType("self-attention", "n^2 d", n**2 * d, "1", 1, "1", 1),
        LayerType("recurrent", "n d^2", n * d**2, "n", n, "n", n),
        LayerType("convolutional", "k n d^2", k * n * d**2, "1", 1, "log_k(n)", log(n, k)),
        LayerType("restricted self-attention", "r n d", r * n * d, "1", 1, "n/r", n / r),
    )
