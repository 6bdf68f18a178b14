"""The formula of linear biases of scores by the distance of query and key (ALiBi)."""

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest_spec.relative_bias import slopes
from attentest_spec.setting import Array


def with_bias(formula: Formula, part: str, scaled: Step, mask: Step | None) -> Step:
    """Add the scaled scores with the linear biases of their heads."""
    queries, keys = scaled.value.shape[-2:]
    ahead = np.arange(keys)[None, :] - np.arange(queries)[:, None]
    biases = _biases(formula, part, ahead, scaled.axes)
    _of_earlier_keys(formula, part, ahead, scaled, mask)
    return formula.step(
        part,
        "scores with biases",
        lambda s, b: s + b,
        scaled,
        biases,
        text="scores + biases",
        axes=scaled.axes,
        mistakes=[
            Mistake("scores - biases", lambda s, b: s - b),
            Mistake("scores * biases", lambda s, b: s * b),
        ],
    )


def _biases(formula: Formula, part: str, ahead: Array, axes: str) -> Step:
    """Add the biases (H, Q, K) of all heads."""
    heads, kind = formula.sizes.heads, formula.choices.relative_bias
    own = formula.step(
        part,
        "slopes",
        lambda: slopes(heads, kind),
        text="the slopes of the heads",
        axes="H",
        mistakes=[
            *(
                Mistake(text, lambda value=value: value)
                for text, value in _other_slopes(heads, kind).items()
            )
        ],
    )
    distance = np.abs(ahead)
    return formula.step(
        part,
        "biases",
        lambda slopes: -slopes[:, None, None] * distance,
        own,
        text="minus slope * distance",
        axes=axes[1:],
        mistakes=[
            Mistake("plus slope * distance", lambda s: s[:, None, None] * distance),
            Mistake("plus slope * distance", lambda s: -s[:, None, None] * ahead),
            Mistake("minus the distance, without the slopes", lambda s: -distance + 0 * _rows(s)),
            Mistake("minus slope * distance^2", lambda s: -_rows(s) * distance**2),
            Mistake("minus slope * (distance + 1)", lambda s: -_rows(s) * (distance + 1)),
        ],
    )


def _rows(slopes: Array) -> Array:
    """Return slopes (H) as (H, 1, 1)."""
    return slopes[:, None, None]


def _other_slopes(heads: int, kind: str) -> dict[str, Array]:
    """Return what is computed by mistake for the slopes, in words."""
    number = np.arange(heads)
    found = {
        "the slopes in the reverse order": slopes(heads, kind)[::-1],
        "2^(-8h/H), from head h = 0 on": 2.0 ** (-8.0 * number / heads),
        "2^(-h), whatever the number of heads": 2.0 ** -(number + 1.0),
        "1/h": 1.0 / (number + 1.0),
    }
    if kind == "alibi":
        found["2^(-8h/H) for all heads"] = slopes(heads, "alibi-geometric")
    return found


def _of_earlier_keys(
    formula: Formula, part: str, ahead: Array, scaled: Step, mask: Step | None
) -> None:
    """Add other forms of the biases: those that differ at later keys, or by a number for a query.

    A mask hides later keys, and a softmax does not depend on what all scores of a query have.
    """
    own = _rows(slopes(formula.sizes.heads, formula.choices.relative_bias))
    signed = own * ahead
    forms = {
        "signed biases": (signed, False),
        "biases by the number of the key": (own * np.arange(ahead.shape[1]) + 0.0 * signed, False),
        "biases of earlier keys": (own * np.minimum(ahead, 0), False),
    }
    if mask is not None:
        keep = mask.value
        shape = np.broadcast_shapes(keep.shape, (1, *signed.shape))
        forms["masked biases"] = np.where(keep, np.broadcast_to(signed, shape), -np.inf), True
    for name, (value, filled) in forms.items():
        axes = scaled.axes[-value.ndim :]
        formula.step(
            part,
            name,
            lambda value=value: value,
            text=f"the {name}",
            axes=axes,
            optional=True,
            filled=filled,
        )
        if not filled:
            formula.step(
                part,
                f"scores with {name}",
                lambda s, value=value: s + value,
                scaled,
                text=f"scores + {name}",
                axes=scaled.axes,
                optional=True,
            )
