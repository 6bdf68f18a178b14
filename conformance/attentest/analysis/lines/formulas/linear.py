"""The formula of a linear map."""

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.setting import Array


def linear(formula: Formula, part: str, x: Step, columns: str, what: str) -> Step:
    """Add x W^T + b with the parameters under `part`."""
    prefix = f"{part}." if part else ""
    weight = formula.parameter(f"{prefix}weight", columns + x.axes[-1])
    bias = formula.parameter(f"{prefix}bias", columns)
    assert weight is not None
    axes = x.axes[:-1] + columns

    def product(x: Array, weight: Array, *bias: Array) -> Array:
        return x @ weight.T

    turned = Mistake("x W with W not transposed", lambda x, w, *b: x @ w + sum(b))
    if bias is None:
        text = f"x W^T in the {what}"
        return formula.step(
            part, "product", product, x, weight, text=text, axes=axes, mistakes=[turned]
        )
    formula.step(part, "product", product, x, weight, text="x W^T", axes=axes, optional=True)
    return formula.step(
        part,
        "result",
        lambda x, weight, bias: x @ weight.T + bias,
        x,
        weight,
        bias,
        text=f"x W^T + b in the {what}",
        axes=axes,
        mistakes=[
            Mistake(f"x W^T in the {what}, without its bias", product),
            turned,
            Mistake("x W^T - b", lambda x, w, b: x @ w.T - b),
        ],
    )
