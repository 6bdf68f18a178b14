"""Arguments whose meaning a call with numbers shows, where their names alone do not."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import Filling, head_width, root_of_width
from attentest.targets.adapt.names import words
from attentest.targets.adapt.objects.left_out import left_out
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec import Sizes

_SCALES = words("scale scaling scalefactor scalingfactor factor scaler")
"""Names of what the scores are divided by, or multiplied with."""

_CLOSE = 1e-5
"""Largest difference, in single precision, between two ways to compute one attention."""


def _inverse_root(sizes: Sizes) -> float:
    return 1.0 / root_of_width(sizes)


_FACTORS = (
    Filling("sqrt(d_model/heads)", root_of_width, code="head_width(sizes) ** 0.5"),
    Filling("1/sqrt(d_model/heads)", _inverse_root, code="head_width(sizes) ** -0.5"),
)
"""Values that the caller of an attention may give: the divisor of its scores, or their factor."""


def measured(
    thing: Callable[..., Any], component: str, own: str, read: Mapping[str, Filling | None]
) -> Filling | None:
    """Return what the argument `own` of `thing` gets, None where no call shows what it is.

    The other arguments are `read`.
    """
    if component == "attention":
        return _factor(thing, own, read)
    return left_out(thing, component, own, read)


def _factor(
    thing: Callable[..., Any], own: str, read: Mapping[str, Filling | None]
) -> Filling | None:
    """Return the divisor or the factor of the scores that gives scaled dot-product attention."""
    if squashed(own) not in _SCALES:
        return None
    source = torch.Generator().manual_seed(0)
    shape = (2, SIZES.heads, 5, head_width(SIZES))
    q, k, v = three = [torch.randn(shape, generator=source) for _ in range(3)]
    expected = scaled_dot_product_attention(q, k, v)
    values = {name: one.value(SIZES) for name, one in read.items() if one is not None}
    for factor in _FACTORS:
        result = _result(thing, {**values, own: factor.value(SIZES)}, three)
        if result is None or result.shape != expected.shape:
            continue
        if bool((result - expected).abs().max() < _CLOSE):
            return factor
    return None


def _result(
    thing: Callable[..., Any], values: Mapping[str, Any], three: list[Tensor]
) -> Tensor | None:
    """Return the first tensor that `thing`, built with `values`, makes of queries, keys, values."""
    try:
        with undisturbed(), torch.no_grad():
            built = thing(**values)
            found = (built.eval() if isinstance(built, nn.Module) else built)(*three)
    except Exception:  # code that a user wrote may raise anything
        return None
    first = found[0] if isinstance(found, tuple) else found
    return first if isinstance(first, Tensor) else None
