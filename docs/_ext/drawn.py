"""Arrays of a page: computed by the code that the page shows, compared with the spec, and drawn.

    <!-- compute: scores
    rows: the cat sat
    columns: the cat sat
    reference: ORACLES["attention"](given, query, key, value)
    -->

All such places of a page share one namespace, which begins with NumPy and the spec: a page is one
program in pieces. The array that is named is drawn, one panel for each head. `rows` and `columns`
label its last two axes. Where it differs from the value of `reference`, the page is refused, so
that it cannot teach another Transformer than the spec describes.

    <!-- mask: package.module
    keep: mask == 0
    means: target_mask
    -->

The code is an expression in the namespace of the module, together with `tokens` (two sequences of
four tokens, the second one with padding at its last two positions; a tensor, or an array for the
spec), `pad`, `length` and `given`. The colour of a cell shows whether a query may attend to it,
which `keep` computes from `mask`; the text is the value of the mask. `means` names the component of
the spec that the mask must agree with.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
from matrices import Drawing, by_sign, drawings
from palette import HIDDEN, KEEP

import attentest_spec
from attentest_spec import Setting
from attentest_spec.oracles import ORACLES

TOLERANCE = 1e-12
TOKENS = np.array([[5, 7, 2, 4], [3, 6, 0, 0]])
PAD = 0
GIVEN: dict[str, tuple[Any, ...]] = {
    "padding_mask": (TOKENS, PAD),
    "causal_mask": (TOKENS.shape[1],),
    "target_mask": (TOKENS, PAD),
}


def namespace() -> dict[str, Any]:
    """Return the names with which a page begins."""
    return {"np": np, **vars(attentest_spec)}


def computed(
    name: str, code: str, options: Mapping[str, str], names: dict[str, Any]
) -> tuple[str, list[Drawing]]:
    """Run `code` in `names`; return the shape of the array `name`, and its drawings.

    Raises ValueError where it differs from the reference.
    """
    exec(code, names)
    values = np.asarray(names[name])
    if reference := options.get("reference"):
        difference = float(np.abs(values.astype(float) - eval(reference, names)).max())
        if not difference <= TOLERANCE:
            raise ValueError(f"{name} differs by {difference:.3g} from {reference}")
    labels = [options.get(axis, "").split() for axis in ("rows", "columns")]
    heads = [f"head {number + 1}" for number in range(values[0].shape[0])]
    titles = heads if values.ndim == 4 and len(heads) > 1 else []
    is_mask = values.dtype == bool
    colours = np.where(values, KEEP, HIDDEN) if is_mask else by_sign(values)
    return f"# {name}: shape {values.shape}", drawings(name, values, colours, *labels, titles)


def mask(module: str, expression: str, options: Mapping[str, str]) -> tuple[str, list[Drawing]]:
    """Return the shape and type of a mask, and its drawings."""
    values = evaluate(module, expression)
    keep = visible(values, options.get("keep", "mask"), options.get("means", ""))
    return f"# shape {values.shape}, {values.dtype}", pictures(values, keep)


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


def visible(values: np.ndarray, keep: str, means: str) -> np.ndarray:
    """Return where a query may attend under a mask; ValueError if the spec does not agree."""
    shown = np.asarray(eval(keep, {"mask": values, "np": np}))
    if means:
        wanted = ORACLES[means](Setting(), *GIVEN[means])
        actual = shown[:, None] if means != "causal_mask" and shown.ndim == 3 else shown
        actual = shown[:, None, None] if means == "padding_mask" and shown.ndim == 2 else actual
        if not np.array_equal(*np.broadcast_arrays(actual, wanted)):
            raise ValueError(f"the mask is not the {means} of the spec: {shown.tolist()}")
    return shown


def pictures(values: np.ndarray, keep: np.ndarray) -> list[Drawing]:
    """Return the matrices of a mask, queries by keys, with the colours of `keep`."""
    matrices = values.reshape(-1, *(values.shape[-2:] if values.ndim > 1 else (1, len(values))))
    shown = np.broadcast_to(keep, values.shape).reshape(matrices.shape)
    count, queries, keys = matrices.shape
    rows = [f"q{number + 1}" for number in range(queries)] if queries > 1 else ["every q"]
    columns = [f"k{number + 1}" for number in range(keys)]
    titles = [f"sequence {number + 1}" for number in range(count)] if count > 1 else []
    return drawings("mask", matrices, np.where(shown, KEEP, HIDDEN), rows, columns, titles)
