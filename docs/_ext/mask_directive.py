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

from importlib import import_module
from typing import Any

import numpy as np
from docutils import nodes
from matrices import drawing
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
KEPT, HIDDEN = "#8fd3c0", "#e3e1dc"


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
    """Return the matrices in `mask`, queries by keys, with the colours of `keep`."""
    matrices = mask.reshape(-1, *(mask.shape[-2:] if mask.ndim > 1 else (1, mask.shape[0])))
    shown = np.broadcast_to(keep, mask.shape).reshape(matrices.shape)
    count, queries, keys = matrices.shape
    rows = [f"q{number + 1}" for number in range(queries)] if queries > 1 else ["every q"]
    columns = [f"k{number + 1}" for number in range(keys)]
    titles = [f"sequence {number + 1}" for number in range(count)] if count > 1 else []
    return drawing(matrices, np.where(shown, KEPT, HIDDEN), rows, columns, titles)


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
