"""The formulas of the embedding and of the generator."""

from collections.abc import Callable
from functools import partial
from math import sqrt

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.attention import times
from attentest.analysis.lines.formulas.linear import linear
from attentest_spec.attention import softmax
from attentest_spec.generator import log_softmax
from attentest_spec.setting import Array


def embedding(formula: Formula, part: str, tokens: Step) -> Step:
    """Add the rows of the tokens, scaled as chosen."""
    prefix = f"{part}." if part else ""
    weight = formula.parameter(f"{prefix}weight", "VD")
    assert weight is not None
    rows = formula.step(
        part,
        "rows",
        lambda tokens, rows: rows[tokens],
        tokens,
        weight,
        text="the table's row of every token",
        axes=tokens.axes + "D",
    )
    if formula.choices.embedding_scale != "sqrt-d":
        return rows
    width = weight.value.shape[-1]
    formula.step(
        part,
        "scaled table",
        times(sqrt(width)),
        weight,
        text="the table times sqrt(d_model)",
        axes="VD",
        optional=True,
    )
    factors = {
        " without the factor sqrt(d_model)": 1.0,
        f" / sqrt(d_model), where sqrt(d_model) = {sqrt(width):.3g}": width**-0.5,
        f" * d_model, where d_model = {width}": float(width),
        f" / d_model, where d_model = {width}": 1.0 / width,
    }
    return formula.step(
        part,
        "scaled rows",
        times(sqrt(width)),
        rows,
        text=f"rows * sqrt(d_model), where sqrt(d_model) = {sqrt(width):.3g}",
        axes=rows.axes,
        mistakes=[Mistake(f"rows{text}", times(factor)) for text, factor in factors.items()],
    )


def generator(formula: Formula, part: str, x: Step) -> Step:
    """Add the map to the vocabulary, normalised as chosen."""
    choices, width = formula.choices, x.value.shape[-1]
    if choices.logit_scale == "inverse-sqrt-d":
        x = formula.step(
            part,
            "scaled input",
            times(width**-0.5),
            x,
            text="x / sqrt(d_model)",
            axes=x.axes,
        )
    logits = linear(formula, part, x, "V", "generator")
    if choices.output == "logits":
        return logits
    functions = {"probabilities": softmax, "log-probabilities": log_softmax}
    texts = {
        "probabilities": "softmax of the logits",
        "log-probabilities": "logarithm of the softmax of the logits",
    }

    def over(function: Callable[[Array], Array], axis: int, x: Array) -> Array:
        return function(x.swapaxes(axis, -1)).swapaxes(axis, -1)

    chosen = functions[choices.output]
    formula.step(part, "softmax", softmax, logits, text="softmax", axes=logits.axes, optional=True)
    return formula.step(
        part,
        "normalised output",
        chosen,
        logits,
        text=f"{texts[choices.output]} over the vocabulary",
        axes=logits.axes,
        mistakes=[
            *(
                Mistake(f"{texts[choices.output]} over the {what}", partial(over, chosen, axis))
                for axis, what in ((-2, "positions"), (0, "samples"))
            ),
            *(
                Mistake(f"{texts[name]} over the vocabulary", function)
                for name, function in functions.items()
                if name != choices.output
            ),
            Mistake("sigmoid of the logits", lambda x: 1 / (1 + np.exp(-x))),
        ],
    )
