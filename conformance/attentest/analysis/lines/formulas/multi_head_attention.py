"""The formula of multi-head attention."""

from collections.abc import Sequence

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.attention import attention
from attentest.analysis.lines.formulas.heads import placed_heads
from attentest.analysis.lines.formulas.linear import linear
from attentest.analysis.lines.formulas.masks import causal
from attentest_spec import Choices, Setting
from attentest_spec.multi_head_attention import merge, repeat, split
from attentest_spec.order import own_mask, unordered
from attentest_spec.parameters import key_heads
from attentest_spec.setting import Array


def multi_head_attention(
    formula: Formula,
    part: str,
    query: Step,
    key: Step,
    value: Step,
    mask: Step | None,
    *,
    to_itself: bool = True,
) -> Step:
    """Add Concat(head_1, .., head_h) W^O with a head of attention for each slice.

    What attention has an order of its own for, positions and biases of distances, is only where a
    sequence attends `to_itself`.
    """
    choices = formula.choices if to_itself else unordered(formula.choices)
    prefix = f"{part}." if part else ""
    heads = formula.sizes.heads
    shared = key_heads(formula.sizes, formula.choices)
    axis_of_keys = key.axes[1] if key.axes[1] != query.axes[1] else "K"
    heads_of = {}
    for name, x in (("query", query), ("key", key), ("value", value)):
        place = query.axes[1] if name == "query" else axis_of_keys
        projected = linear(formula, f"{prefix}{name}", x, "D", f"{name} projection")
        count = heads if name == "query" else shared
        heads_of[name] = formula.step(
            part,
            f"{name} heads",
            lambda x, count=count: split(x, count),
            projected,
            text=f"the projected {name}, split into heads",
            axes=f"B{'H' if count == heads else 'G'}{place}E",
        )
    _packed(formula, part, [heads_of["query"], heads_of["key"], heads_of["value"]])
    _packed(formula, part, [heads_of["key"], heads_of["value"]])
    projected_key = heads_of["key"]
    placed = placed_heads(formula, choices, part, heads_of["query"], projected_key)
    heads_of |= dict(zip(("query", "key"), placed, strict=True))
    if shared != heads:
        times, keys = heads // shared, "key heads"
        if heads_of["key"] is not projected_key:  # some code repeats keys before they are placed
            _repeated(formula, part, keys, projected_key, times, optional=True)
            how = "turned" if choices.attention_rotary != "none" else "normalised"
            keys = f"{how} key heads"
        heads_of["key"] = _repeated(formula, part, keys, heads_of["key"], times)
        heads_of["value"] = _repeated(formula, part, "value heads", heads_of["value"], times)
    mask = _with_own(formula, choices, part, mask, query.value.shape[1])
    biased = choices.relative_bias.startswith("alibi")
    q, k, v = (heads_of[name] for name in ("query", "key", "value"))
    context = attention(formula, part, q, k, v, mask, biased=biased)
    merged = formula.step(
        part,
        "merged heads",
        merge,
        context,
        text="the heads side by side",
        axes="BLD",
        mistakes=[
            Mistake(
                "the heads in the order of (B, H, L, E), not transposed back to (B, L, H, E)",
                lambda x: x.reshape(x.shape[0], x.shape[2], -1),
            ),
            Mistake(
                "the heads interleaved",
                lambda x: np.moveaxis(x, 1, 3).reshape(x.shape[0], x.shape[2], -1),
            ),
        ],
    )
    return linear(formula, f"{prefix}output", merged, "D", "output projection")


def _repeated(
    formula: Formula, part: str, heads: str, x: Step, times: int, *, optional: bool = False
) -> Step:
    """Add the `heads` of keys or values, each as often as it has query heads."""
    return formula.step(
        part,
        f"repeated {heads}",
        lambda x: repeat(x, times),
        x,
        text=f"each of the {heads} for {times} query heads in a row",
        axes=x.axes.replace("G", "H"),
        optional=optional,
        mistakes=[
            Mistake(
                f"the {heads} dealt out in turn: 0, 1, .., 0, 1, ..",
                lambda x: np.tile(x, (1, times, 1, 1)),
            ),
            Mistake(
                f"the first of the {heads} for all query heads",
                lambda x: np.repeat(x[:, :1], x.shape[1] * times, axis=1),
            ),
        ],
    )


def _with_own(
    formula: Formula, choices: Choices, part: str, mask: Step | None, length: int
) -> Step | None:
    """Return the mask; where attention hides keys by itself, a step without them."""
    own = own_mask(Setting(formula.sizes, choices), length, length)
    if own is None:
        return mask
    if choices.attention_window == "none":
        later = causal(formula, length)
    else:
        later = _seen(formula, choices, own)
    if mask is None:
        return later
    return formula.step(
        part,
        "mask with causality",
        lambda mask, causal: mask & causal,
        mask,
        later,
        text="keys that the mask allows and that are not after their query",
        axes="BHQK",
        mistakes=[
            Mistake("the mask alone", lambda m, c: m & np.ones_like(c)),
            Mistake("the causal mask alone", lambda m, c: c & np.ones_like(m)),
        ],
    )


def _seen(formula: Formula, choices: Choices, own: Array) -> Step:
    """Add which keys are inside of the window of each query, which is among them."""
    length, wide = own.shape[-1], formula.sizes.window

    def other(window: int) -> Array:
        mask = own_mask(Setting(formula.sizes.but(window=window), choices), length, length)
        return own if mask is None else mask

    return formula.step(
        "",
        "window",
        lambda: own,
        text="the keys inside of the window",
        axes="BHQK",
        mistakes=[
            Mistake("one key more than the window has", lambda: other(wide + 1)),
            Mistake("one key less than the window has", lambda: other(wide - 1)),
            Mistake("all keys up to the query, without a window", lambda: np.tril(own | True)),
            Mistake(
                "the keys of the window and those after the query",
                lambda: own | ~np.tril(np.ones_like(own)),
            ),
        ],
    )


def _packed(formula: Formula, part: str, several: Sequence[Step]) -> None:
    """Add the heads of several inputs as one map gives them, where their lengths are equal."""
    if len({one.value.shape for one in several}) > 1:
        return
    names = " and ".join(one.name.removeprefix(f"{part}.").split()[0] for one in several)
    formula.step(
        part,
        f"packed {names}",
        lambda *values: np.stack(values),
        *several,
        text=f"the projected {names} in one array",
        axes=f"N{several[0].axes}",
        optional=True,
    )
