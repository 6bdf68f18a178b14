"""The residual connection around a sublayer, from the formula (section 3.1)."""

from collections.abc import Callable
from typing import Annotated

from attentest_spec.norm import norm
from attentest_spec.setting import Floats, Setting


def residual(
    given: Setting, x: Annotated[Floats, "*rows D"], sublayer: Annotated[Floats, "D D"]
) -> Annotated[Floats, "*rows D"]:
    """Wrap the sublayer x -> x W in a residual connection and a layer norm.

    x (.., D) and the square matrix W (D, D) that stands for the sublayer give (.., D). Choice:
    `norm_placement`, `norm_kind`, and those of the norm. Source: section 3.1.
    """
    return wrap(given.under("norm"), x, lambda inner: inner @ sublayer)


def wrap(
    of_norm: Setting, x: Annotated[Floats, "*rows D"], sublayer: Callable[[Floats], Floats]
) -> Annotated[Floats, "*rows D"]:
    """Return norm(x + sublayer(x)) for the placement "post", x + sublayer(norm(x)) for "pre".

    x (.., D) gives (.., D). `of_norm` is the setting of the norm, with `gain` and
    `bias`. Source: section 3.1.
    """
    if of_norm.choices.norm_placement == "pre":
        return x + sublayer(norm(of_norm, x))
    return norm(of_norm, x + sublayer(x))
