"""Inputs for oracles and judges, and the tolerances of their outputs.

Everything is drawn from a seed in float64 and rounded to the precision of the judge, so that both
start from equal numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import rounding

from attentest_spec.attention import attention, scores
from attentest_spec.multi_head_attention import merge, split
from attentest_spec.setting import Array, Floats, Setting

PRECISIONS = ("float64", "float32")

SCALES = (1e-3, 1.0, 30.0)


@dataclass(frozen=True)
class Drawn:
    """A source of inputs in one precision, at one scale."""

    precision: str
    scale: float
    rng: np.random.Generator

    @property
    def u(self) -> float:
        """Half the distance of 1 to the next number, the oracle's own rounding included."""
        return rounding.unit(np.dtype(self.precision)) + rounding.unit(np.dtype("float64"))

    def numbers(self, *shape: int) -> Floats:
        """Return signed numbers that the precision holds exactly."""
        drawn = self.scale * self.rng.normal(size=shape)
        return drawn.astype(self.precision).astype(np.float64)

    def lowered(self, array: Array) -> Array:
        """Return `array` as the judge takes it."""
        return array.astype(self.precision) if array.dtype.kind == "f" else array


def attention_bound(
    query: Floats, key: Floats, value: Floats, mask: Array | None, u: float
) -> tuple[Floats, Floats, Floats]:
    """Return the oracle's output and weights of attention, and the bound of the output."""
    output, weights = attention(Setting(), query, key, value, mask)
    raw = scores(query, key)
    seen = raw if mask is None else np.where(mask, raw, -np.inf)
    products = rounding.of_products(query, key.swapaxes(-1, -2), u, extra=4)
    off = products / np.sqrt(query.shape[-1])
    return output, weights, rounding.of_attention(seen, off, weights, value, u)


def linear_bound(x: Floats, off: Floats, weight: Floats, bias: Floats | None, u: float) -> Floats:
    """Return the bound of x W^T + b where x is itself off by `off`."""
    bound: Floats = rounding.of_products(x, weight.T, u, extra=2) + off @ np.abs(weight.T)
    return bound if bias is None else bound + 2 * u * np.abs(bias)


def parameters(drawn: Drawn, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Floats]:
    """Return parameters of the given shapes, the matrices scaled by their width."""
    unit = Drawn(drawn.precision, 1.0, drawn.rng)
    return {
        name: unit.numbers(*shape) * (2.0 ** -(shape[-1].bit_length() // 2) if shape[1:] else 1.0)
        for name, shape in shapes.items()
    }


def heads_bound(
    drawn: Drawn,
    own: dict[str, Floats],
    inputs: tuple[Floats, Floats, Floats],
    mask: Array | None,
    heads: int,
) -> Floats:
    """Return the bound of multi-head attention: that of attention, carried on through it."""
    made, off = {}, {}
    for name, x in zip(("query", "key", "value"), inputs, strict=True):
        weight, bias = own[f"{name}.weight"], own[f"{name}.bias"]
        made[name] = split(x @ weight.T + bias, heads)
        off[name] = split(linear_bound(x, 0 * x, weight, bias, drawn.u), heads)
    query, key, value = made.values()
    products = rounding.of_products(query, key.swapaxes(-1, -2), drawn.u, extra=4)
    carried = off["query"] @ np.abs(key).swapaxes(-1, -2) + np.abs(query) @ off["key"].swapaxes(
        -1, -2
    )
    _, weights, _ = attention_bound(query, key, value, mask, drawn.u)
    raw = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    seen = raw if mask is None else np.where(mask, raw, -np.inf)
    score_bound = (products + carried) / np.sqrt(query.shape[-1])
    inner = rounding.of_attention(seen, score_bound, weights, value, drawn.u)
    inner = (
        inner + (weights + weights * rounding.of_softmax(seen, score_bound, drawn.u)) @ off["value"]
    )
    context = merge(weights @ value)
    return linear_bound(context, merge(inner), own["output.weight"], own["output.bias"], drawn.u)
