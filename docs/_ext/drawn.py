"""The directive `drawn`: computes a mask with real code and draws it, so that no picture lies.

    ```{drawn} package.module
    :keep: mask == 0
    :means: target_mask

    some_mask(tokens, pad)
    ```

The expression is computed in the namespace of the module, which also holds `tokens` (two sentences
of four, the second one with a pad in third and fourth place; a tensor, or an array for the spec),
`pad`, `length` and `given`. Cells are coloured by what may be attended, which `keep` says in terms
of `mask`; the text in them is what the mask itself holds. `means` names the component of the spec
that the mask stands for: the build fails where the two differ.
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


def computed(module: str, expression: str) -> np.ndarray:
    """Return the array that `expression` gives in the namespace of `module`."""
    loaded = import_module(module)
    known: dict[str, Any] = {"tokens": TOKENS, "pad": PAD, "length": TOKENS.shape[1]}
    if module.startswith("attentest_spec"):
        known["given"] = Setting()
    else:
        import torch

        known["tokens"] = torch.from_numpy(TOKENS)
    return np.asarray(eval(expression, {**vars(loaded), **known}))


def kept(mask: np.ndarray, keep: str, means: str) -> np.ndarray:
    """Return where `mask` lets a query attend; ValueError where the spec says otherwise."""
    found = np.asarray(eval(keep, {"mask": mask, "np": np}))
    if means:
        wanted = ORACLES[means](Setting(), *GIVEN[means])
        compared = found[:, None] if means != "causal_mask" and found.ndim == 3 else found
        compared = found[:, None, None] if means == "padding_mask" and found.ndim == 2 else compared
        if not np.array_equal(*np.broadcast_arrays(compared, wanted)):
            raise ValueError(f"what is drawn is not the spec's {means}: {found.tolist()}")
    return found


def picture(mask: np.ndarray, keep: np.ndarray) -> str:
    """Return one SVG for every matrix in `mask`, coloured by `keep`, in a row."""
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
    told = escape("; ".join(" ".join(_text(value) for value in row) for row in values))
    size = f'width="{columns * SIDE + 2}" height="{rows * SIDE + 2}"'
    return f'<svg {size} role="img" aria-label="{told}"><title>{told}</title>{cells}</svg>'


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


class Drawn(SphinxDirective):
    """Compute, check and draw one mask."""

    required_arguments = 1
    has_content = True
    option_spec = {"keep": str, "means": str}  # noqa: RUF012  # docutils reads it so

    def run(self) -> list[nodes.Node]:
        """Return the expression, its shape and its picture."""
        expression = " ".join(self.content)
        try:
            mask = computed(self.arguments[0], expression)
            keep = kept(mask, self.options.get("keep", "mask"), self.options.get("means", ""))
        except Exception as failure:
            raise self.error(f"{expression} cannot be drawn: {failure}") from failure
        shape = f"shape {mask.shape}, {mask.dtype}"
        code = nodes.literal_block(expression, f"{expression}    # {shape}", language="python")
        return [code, nodes.raw("", picture(mask, keep), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("drawn", Drawn)
    return {"parallel_read_safe": True}
