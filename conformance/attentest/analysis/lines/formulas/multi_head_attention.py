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
    keys = key.axes[1] if key.axes[1] != query.axes[1] else "K"
    heads_of = {}
    for name, x in (("query", query), ("key", key), ("value", value)):
        place = query.axes[1] if name == "query" else keys
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
    if shared != heads:
        _repeated(formula, part, "key", heads_of["key"], heads // shared, first=True)
    placed = placed_heads(formula, choices, part, heads_of["query"], heads_of["key"])
    heads_of |= dict(zip(("query", "key"), placed, strict=True))
    for name in ("key", "value") if shared != heads else ():
        heads_of[name] = _repeated(formula, part, name, heads_of[name], heads // shared)
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
    formula: Formula, part: str, name: str, x: Step, times: int, *, first: bool = False
) -> Step:
    """Add the heads of keys or values, each as often as it has query heads.

    Some code repeats keys `first`, before they are turned.
    """
    return formula.step(
        part,
        f"{name} heads, repeated first" if first else f"repeated {name} heads",
        lambda x: repeat(x, times),
        x,
        text=f"each {name} head for {times} query heads in a row",
        axes=x.axes.replace("G", "H"),
        optional=first,
        mistakes=[
            Mistake(
                f"the {name} heads dealt out in turn: 0, 1, .., 0, 1, ..",
                lambda x: np.tile(x, (1, times, 1, 1)),
            ),
            Mistake(
                f"the first {name} head for all query heads",
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
    later = causal(formula, length) if choices.attention_window == "none" else _seen(formula, own)
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


def _seen(formula: Formula, own: Array) -> Step:
    text = "the keys inside of the window"
    return formula.step("", "window", lambda: own, text=text, axes="BHQK")


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
