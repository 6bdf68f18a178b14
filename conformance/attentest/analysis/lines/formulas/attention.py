"""The formula of scaled dot-product attention, and how it is got wrong."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import sqrt

import numpy as np

from attentest.analysis.lines.formula import Formula, Mistake, Step
from attentest.analysis.lines.formulas.bias import with_bias
from attentest_spec import Setting
from attentest_spec.attention import masked_softmax, softmax
from attentest_spec.generator import log_softmax
from attentest_spec.setting import Array


def attention(
    formula: Formula,
    part: str,
    query: Step,
    key: Step,
    value: Step,
    mask: Step | None,
    *,
    biased: bool = False,
) -> Step:
    """Add softmax(Q K^T / sqrt(d_k)) V, with biases of distances where it is `biased`."""
    head, lengths = (
        query.value.shape[-1],
        {
            "keys": key.value.shape[-2],
            "queries": query.value.shape[-2],
            "columns of the values": value.value.shape[-1],
        },
    )
    factor, text = _scale(formula, head)
    for one, what in ((query, "query"), (key, "key")):
        for name, by, said in _scaled_inputs(formula, head, what):
            formula.step(
                part,
                name,
                times(by),
                one,
                text=said,
                axes=one.axes,
                optional=True,
                mistakes=[
                    Mistake(f"{what}{text}", times(factor))
                    for text, factor in _constants(formula, head, lengths)
                ],
            )
    axes = query.axes[:-1] + key.axes[-2].replace("Q", "K")
    if axes[-1] == axes[-2]:
        axes = axes[:-1] + "K"
    scores = formula.step(
        part,
        "scores",
        lambda q, k: q @ k.swapaxes(-1, -2),
        query,
        key,
        text="the product of query and key",
        axes=axes,
        mistakes=[
            Mistake("the product of query and query", lambda q, k: q @ q.swapaxes(-1, -2)),
            Mistake("the product of key and key", lambda q, k: k @ k.swapaxes(-1, -2)),
            Mistake("the product of key and query", lambda q, k: k @ q.swapaxes(-1, -2)),
            Mistake("minus the product of query and key", lambda q, k: -q @ k.swapaxes(-1, -2)),
        ],
    )
    scaled = formula.step(
        part,
        "scaled scores",
        times(factor),
        scores,
        text=text,
        axes=axes,
        mistakes=[
            Mistake(f"scores{text}", times(factor))
            for text, factor in _constants(formula, head, lengths)
        ],
    )
    if formula.choices.score_cap != "none":
        scaled = _capped(formula, part, scaled, float(formula.choices.score_cap))
    if biased:
        scaled = with_bias(formula, part, scaled, mask)
    masked = scaled if mask is None else _masked(formula, part, scaled, mask, axes)
    exponentials(formula, part, masked)
    weights = formula.step(
        part,
        "weights",
        partial(_weights, formula.setting),
        masked,
        text="softmax of the scores over the keys",
        axes=axes,
        mistakes=list(_other_softmax(axes, formula.setting)),
    )
    return formula.step(
        part,
        "head outputs",
        lambda weights, value: weights @ value,
        weights,
        value,
        text="weights times value",
        axes=query.axes[:-1] + value.axes[-1],
        mistakes=[
            Mistake("the transposed weights times value", lambda w, v: w.swapaxes(-1, -2) @ v),
            Mistake("squared weights times value", lambda w, v: (w * w) @ v),
            Mistake("the mean of the values", lambda w, v: np.full_like(w, 1 / w.shape[-1]) @ v),
        ],
    )


def _scale(formula: Formula, head: int) -> tuple[float, str]:
    """Return the factor of the scores, and the step that multiplies by it in words."""
    chosen = formula.choices.score_scale
    if chosen == "inverse-sqrt-e":
        return head**-0.5, f"scores / sqrt(d_k), where sqrt(d_k) = {sqrt(head):.3g}"
    return float(chosen), f"scores * {float(chosen):.6g}"


def _scaled_inputs(formula: Formula, head: int, what: str) -> Iterator[tuple[str, float, str]]:
    """Yield how code may scale queries or keys first: a name, the factor, and the step in words."""
    chosen = formula.choices.score_scale
    if chosen != "inverse-sqrt-e":
        yield f"scaled {what}", float(chosen), f"{what} * {float(chosen):.6g}"
        return
    root, fourth = head**0.5, head**0.25
    yield f"scaled {what}", 1 / root, f"{what} / sqrt(d_k), where sqrt(d_k) = {root:.3g}"
    words = f"{what} / d_k^(1/4)"
    yield words, 1 / fourth, f"{words}, where d_k^(1/4) = {fourth:.3g}"


def _capped(formula: Formula, part: str, scaled: Step, cap: float) -> Step:
    return formula.step(
        part,
        "capped scores",
        lambda s: cap * np.tanh(s / cap),
        scaled,
        text="cap * tanh(scores / cap)",
        axes=scaled.axes,
        mistakes=[
            Mistake("tanh(scores / cap), without the factor", lambda s: np.tanh(s / cap)),
            Mistake("scores cut off at the cap", lambda s: np.clip(s, -cap, cap)),
        ],
    )


def _constants(
    formula: Formula, head: int, lengths: Mapping[str, int]
) -> Iterator[tuple[str, float]]:
    """Yield factors that scores are multiplied by, in words."""
    width, heads = formula.sizes.d_model, formula.sizes.heads
    yield " without a division by sqrt(d_k)", 1.0
    yield f" / d_k, where d_k = {head}", 1.0 / head
    yield f" * sqrt(d_k), where sqrt(d_k) = {sqrt(head):.3g}", head**0.5
    yield f" / d_k^(1/4), where d_k^(1/4) = {head**0.25:.3g}", head**-0.25
    yield f" / (2 sqrt(d_k)), where sqrt(d_k) = {sqrt(head):.3g}", 0.5 * head**-0.5
    yield f" * d_k, where d_k = {head}", float(head)
    for name, number in {"d_model": width, "heads": heads, **lengths}.items():
        yield f" / sqrt({name}), where sqrt({name}) = {sqrt(number):.3g}", number**-0.5
        yield f" / {name}, where {name} = {number}", 1.0 / number


def times(factor: float) -> Callable[[Array], Array]:
    """Return the function that multiplies by `factor`."""
    return lambda x: x * factor


def _weights(given: Setting, masked: Array) -> Array:
    return masked_softmax(given, masked, np.isfinite(masked))


def _masked(formula: Formula, part: str, scaled: Step, mask: Step, axes: str) -> Step:
    def fill(scores: Array, keep: Array, number: float = -np.inf) -> Array:
        return np.where(keep, scores, number)

    def turned(scores: Array, keep: Array) -> Array:
        whole = np.broadcast_to(keep, np.broadcast_shapes(keep.shape, scores.shape))
        return fill(scores, whole.swapaxes(-1, -2))

    return formula.step(
        part,
        "masked scores",
        fill,
        scaled,
        mask,
        text="scores where the mask allows, minus infinity elsewhere",
        axes=axes,
        filled=True,
        mistakes=[
            Mistake("scores without the mask", lambda s, m: s),
            Mistake(
                "scores where the mask forbids (the mask is inverted)", lambda s, m: fill(s, ~m)
            ),
            Mistake("scores under the transposed mask", turned),
            Mistake("0 at masked scores, which keeps a weight", lambda s, m: fill(s, m, 0.0)),
            Mistake(
                "a small negative number at masked scores",
                lambda s, m: fill(s, m, -1.0),
            ),
            Mistake("scores plus 1 where the mask allows", lambda s, m: s + m),
            Mistake("scores plus 1 where the mask forbids", lambda s, m: s + ~m),
            Mistake("scores minus 1 where the mask forbids", lambda s, m: s - ~m),
            Mistake(
                "scores under the mask of another sample",
                lambda s, m: fill(s, np.roll(m, 1, axis=0)),
            ),
            Mistake("scores under the mask of the first sample", lambda s, m: fill(s, m[:1])),
        ],
    )


def exponentials(formula: Formula, part: str, masked: Step) -> None:
    """Add the steps of a softmax that is written out, all optional."""
    peak = masked.value.max(axis=-1, keepdims=True)
    shifted = formula.step(
        part,
        "shifted scores",
        lambda s: s - peak,
        masked,
        text="scores - max",
        axes=masked.axes,
        optional=True,
        filled=True,
    )
    for name, inner in (("exp", shifted), ("exp of scores", masked)):
        powers = formula.step(
            part, name, np.exp, inner, text="exp(scores)", axes=masked.axes, optional=True
        )
        formula.step(
            part,
            f"sum of {name}",
            lambda p: p.sum(-1, keepdims=True),
            powers,
            text="sum of exp(scores) over the keys",
            axes=masked.axes[:-1] + "1",
            optional=True,
        )


def _other_softmax(axes: str, given: Setting) -> Iterator[Mistake]:
    names = {"B": "samples", "H": "heads", "Q": "queries", "L": "queries", "T": "queries"}

    def over(axis: int, scores: Array) -> Array:
        return softmax(np.asarray(scores).swapaxes(axis, -1)).swapaxes(axis, -1)

    for number, letter in reversed(list(enumerate(axes[:-1]))):
        what = names.get(letter, "queries")
        yield Mistake(f"softmax of the scores over the {what}", partial(over, number))
    yield Mistake("the scores without a softmax", lambda s: s)
    yield Mistake("softmax of minus the scores", lambda s: softmax(-s))
    yield Mistake("exp(scores) without a division by their sum", lambda s: np.exp(s))
    yield Mistake("sigmoid of the scores", lambda s: 1 / (1 + np.exp(-s)))
    yield Mistake("log of the softmax", lambda s: log_softmax(s))
    yield Mistake(
        "softmax of the scores over all of a head",
        lambda s: softmax(s.reshape(*s.shape[:-2], -1)).reshape(s.shape),
    )
    yield Mistake(
        "exp(scores) / (1 + their sum)",
        lambda s: (
            np.exp(s - s.max(-1, keepdims=True))
            / (1 + np.exp(s - s.max(-1, keepdims=True)).sum(-1, keepdims=True))
        ),
    )
