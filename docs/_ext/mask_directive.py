"""The directive `mask`: computes a mask with the code of an implementation and draws it.

    ```{mask} package.module
    :keep: mask == 0
    :means: target_mask

    some_mask(tokens, pad)
    ```

The expression is evaluated in the namespace of the module, together with `tokens` (two sequences
of four tokens, the second one with padding at its last two positions; a tensor, or an array for
the spec), `pad`, `length` and `given`. The colour of a cell shows whether a query may attend to it,
which `keep` computes from `mask`; the text is the value of the mask. `means` names the component of
the spec that the mask must agree with; otherwise the build fails.
"""

from html import escape
from importlib import import_module
from typing import Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from attentest_spec import Setting
from attentest_spec.oracles import ORACLES

TOKENS = np.array([[5, 7, 2, 4], [3, 6, 0, 0]])
PAD = 0
GIVEN: dict[str, tuple[Any, ...]] = {
    "padding_mask": (TOKENS, PAD),
    "causal_mask": (TOKENS.shape[1],),
    "target_mask": (TOKENS, PAD),
}
SIDE = 30
KEPT, HIDDEN, INK = "#8fd3c0", "#e3e1dc", "#1d1d1b"


def evaluate(module: str, expression: str) -> np.ndarray:
    """Return the array that `expression` evaluates to in the namespace of `module`."""
    loaded = import_module(module)
    names: dict[str, Any] = {"tokens": TOKENS, "pad": PAD, "length": TOKENS.shape[1]}
    if module.startswith("attentest_spec"):
        names["given"] = Setting()
    else:
        import torch

        names["tokens"] = torch.from_numpy(TOKENS)
    return np.asarray(eval(expression, {**vars(loaded), **names}))


def visible(mask: np.ndarray, keep: str, means: str) -> np.ndarray:
    """Return where a query may attend under `mask`; ValueError if the spec does not agree."""
    shown = np.asarray(eval(keep, {"mask": mask, "np": np}))
    if means:
        wanted = ORACLES[means](Setting(), *GIVEN[means])
        actual = shown[:, None] if means != "causal_mask" and shown.ndim == 3 else shown
        actual = shown[:, None, None] if means == "padding_mask" and shown.ndim == 2 else actual
        if not np.array_equal(*np.broadcast_arrays(actual, wanted)):
            raise ValueError(f"the mask is not the {means} of the spec: {shown.tolist()}")
    return shown


def picture(mask: np.ndarray, keep: np.ndarray) -> str:
    """Return one SVG for every matrix in `mask`, with the colours of `keep`, in a row."""
    shape = (-1, *(mask.shape[-2:] if mask.ndim > 1 else (1, mask.shape[0])))
    panels = zip(mask.reshape(shape), np.broadcast_to(keep, mask.shape).reshape(shape), strict=True)
    drawings = "".join(_panel(values, colours) for values, colours in panels)
    return f'<div style="display:flex;flex-wrap:wrap;gap:1.5em;margin:.6em 0">{drawings}</div>'


def _panel(values: np.ndarray, keep: np.ndarray) -> str:
    rows, columns = values.shape
    cells = "".join(
        _cell(row, column, values[row, column], bool(keep[row, column]))
        for row in range(rows)
        for column in range(columns)
    )
    label = escape("; ".join(" ".join(_text(value) for value in row) for row in values))
    size = f'width="{columns * SIDE + 2}" height="{rows * SIDE + 2}"'
    return f'<svg {size} role="img" aria-label="{label}"><title>{label}</title>{cells}</svg>'


def _cell(row: int, column: int, value: Any, keep: bool) -> str:
    x, y = column * SIDE + 1, row * SIDE + 1
    half = SIDE / 2
    return (
        f'<rect x="{x}" y="{y}" width="{SIDE}" height="{SIDE}" fill="{KEPT if keep else HIDDEN}" '
        f'stroke="white"/><text x="{x + half}" y="{y + half}" fill="{INK}" font-size="13" '
        f'text-anchor="middle" dominant-baseline="central">{escape(_text(value))}</text>'
    )


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "T" if value else "F"
    if np.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:g}"


class MaskDirective(SphinxDirective):
    """Compute, check and draw one mask."""

    required_arguments = 1
    has_content = True
    option_spec = {"keep": str, "means": str}  # noqa: RUF012  # as docutils expects

    def run(self) -> list[nodes.Node]:
        """Return the expression, its shape and its picture."""
        expression = " ".join(self.content)
        try:
            mask = evaluate(self.arguments[0], expression)
            keep = visible(mask, self.options.get("keep", "mask"), self.options.get("means", ""))
        except Exception as failure:
            raise self.error(f"{expression} cannot be drawn: {failure}") from failure
        shape = f"shape {mask.shape}, {mask.dtype}"
        code = nodes.literal_block(expression, f"{expression}    # {shape}", language="python")
        return [code, nodes.raw("", picture(mask, keep), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("mask", MaskDirective)
    return {"parallel_read_safe": True}
