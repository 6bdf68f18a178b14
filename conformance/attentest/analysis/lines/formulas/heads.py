"""The formula of the heads of queries and keys: how they are normalised and turned."""

import numpy as np

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas.rms_norm import rms_norm
from attentest.analysis.lines.formulas.rotary import tables, turned_heads
from attentest_spec import Choices
from attentest_spec.multi_head_attention import LEAST_LENGTH, merge, split
from attentest_spec.setting import Array


def placed_heads(
    formula: Formula, choices: Choices, part: str, query: Step, key: Step
) -> tuple[Step, Step]:
    """Add queries and keys, normalised and turned as `choices` say, in their order."""
    place = choices.query_key_norm_place
    if place == "before-rotation":
        query, key = _normalised(formula, part, query, key)
    if choices.attention_rotary != "none":
        query, key = _turned(formula, part, query, key)
    if place == "after-rotation":
        query, key = _normalised(formula, part, query, key)
    return query, key


def _turned(formula: Formula, part: str, query: Step, key: Step) -> tuple[Step, Step]:
    """Add queries and keys, turned by the positions 0 to K - 1.

    Raises ValueError for other numbers of queries than of keys.
    """
    batch, _, length, width = key.value.shape
    if query.value.shape[2] != length:
        raise ValueError("The turns are known for as many queries as keys alone.")
    places = formula.leaf("positions", np.arange(length), "L", "the positions")
    waves = tables(formula, part, places, width)
    own = np.broadcast_to(places.value, (batch, length))
    turned = (
        turned_heads(formula, part, what, x, waves, own)
        for what, x in (("query heads", query), ("key heads", key))
    )
    first, second = turned
    return first, second


def _normalised(formula: Formula, part: str, query: Step, key: Step) -> tuple[Step, Step]:
    """Add queries and keys under their norms."""
    prefix = f"{part}." if part else ""
    first, second = (
        _under_norm(formula, f"{prefix}{name}", x)
        for name, x in (("query_norm", query), ("key_norm", key))
    )
    return first, second


def _under_norm(formula: Formula, part: str, x: Step) -> Step:
    heads = x.value.shape[1]
    match formula.choices.query_key_norm:
        case "none":
            return x
        case "per-head":
            return rms_norm(formula, part, x)
        case "whole-projection":
            text = "the heads side by side"
            axes = f"B{x.axes[2]}D"
            whole = formula.step(part, "merged heads", merge, x, text=text, axes=axes)
            normed = rms_norm(formula, part, whole)
            return formula.step(
                part,
                "heads",
                lambda x: split(x, heads),
                normed,
                text="the normalised row, split into heads",
                axes=x.axes,
            )
        case _:
            text = "each head divided by its length"
            return formula.step(part, "unit heads", _of_length_one, x, text=text, axes=x.axes)


def _of_length_one(x: Array) -> Array:
    length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
    found: Array = x / np.maximum(length, LEAST_LENGTH)
    return found
