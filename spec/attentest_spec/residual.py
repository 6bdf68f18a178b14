"""The residual connection around a sublayer, from the formula (section 3.1)."""

from collections.abc import Callable
from typing import Annotated

from attentest_spec.layer_norm import layer_norm
from attentest_spec.setting import Floats, Setting


def residual(
    given: Setting, x: Annotated[Floats, "*rows D"], sublayer: Annotated[Floats, "D D"]
) -> Annotated[Floats, "*rows D"]:
    """Wrap the sublayer x -> x W in a residual connection and a layer norm.

    x (.., D) and the square matrix W (D, D) that stands for the sublayer give (.., D). Choice:
    `norm_placement`, and those of the layer norm. Source: section 3.1.
    """
    return wrap(given.under("norm"), x, lambda inner: inner @ sublayer)


def wrap(
    norm: Setting, x: Annotated[Floats, "*rows D"], sublayer: Callable[[Floats], Floats]
) -> Annotated[Floats, "*rows D"]:
    """Return norm(x + sublayer(x)) for the placement "post", x + sublayer(norm(x)) for "pre".

    x (.., D) gives (.., D). `norm` is the setting of the layer norm, with `gain` and
    `bias`. Source: section 3.1.
    """
    if norm.choices.norm_placement == "pre":
        return x + sublayer(layer_norm(norm, x))
    return layer_norm(norm, x + sublayer(x))
