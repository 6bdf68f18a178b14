"""The formula of multi-head attention."""

from collections.abc import Sequence

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.attention import attention
from attentest.analysis.lines.formulas.linear import linear
from attentest_spec.multi_head_attention import merge, split


def multi_head_attention(
    formula: Formula, part: str, query: Step, key: Step, value: Step, mask: Step | None
) -> Step:
    """Add Concat(head_1, .., head_h) W^O with a head of attention for each slice."""
    prefix = f"{part}." if part else ""
    heads = formula.sizes.heads
    keys = key.axes[1] if key.axes[1] != query.axes[1] else "K"
    heads_of = {}
    for name, x in (("query", query), ("key", key), ("value", value)):
        place = query.axes[1] if name == "query" else keys
        projected = linear(formula, f"{prefix}{name}", x, "D", f"{name} projection")
        heads_of[name] = formula.step(
            part,
            f"{name} heads",
            lambda x: split(x, heads),
            projected,
            text=f"the projected {name}, split into heads",
            axes=f"BH{place}E",
        )
    _packed(formula, part, [heads_of["query"], heads_of["key"], heads_of["value"]])
    _packed(formula, part, [heads_of["key"], heads_of["value"]])
    context = attention(formula, part, heads_of["query"], heads_of["key"], heads_of["value"], mask)
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
