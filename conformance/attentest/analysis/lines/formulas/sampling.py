"""The formula of the probabilities that tokens are drawn by, and how it is got wrong."""

from functools import partial

import numpy as np

from attentest.analysis.lines.formula import Compute, Formula, Mistake, Step
from attentest_spec.attention import softmax
from attentest_spec.decoding import top_k, top_p
from attentest_spec.setting import Array


def sampling(formula: Formula, logits: Step) -> Step:
    """Add the temperature, the filters and the softmax in the declared order.

    Raises ValueError for a temperature of 0, which nothing is divided by.
    """
    if formula.sizes.temperature == 0:
        raise ValueError("a temperature of 0 has no formula")
    if formula.choices.filter_order == "temperature-first":
        filtered = _filtered(formula, _divided(formula, logits))
    else:
        filtered = _divided(formula, _filtered(formula, logits))
    return formula.step(
        "",
        "probabilities",
        softmax,
        filtered,
        text="softmax of the logits over the vocabulary",
        axes="BV",
        mistakes=[
            Mistake("softmax over the samples", lambda x: softmax(x.T).T),
            Mistake("softmax of the softmax", lambda x: softmax(softmax(x))),
        ],
    )


def _divided(formula: Formula, logits: Step) -> Step:
    """Add the division by the temperature, none at a temperature of 1."""
    heat = formula.sizes.temperature
    if heat == 1:
        return logits
    return formula.step(
        "",
        "logits at the temperature",
        lambda x: x / heat,
        logits,
        text=f"logits / temperature, where temperature = {heat:g}",
        axes="BV",
        mistakes=[
            Mistake(f"logits * temperature, where temperature = {heat:g}", lambda x: x * heat),
            Mistake(
                f"softmax(logits) / temperature, where temperature = {heat:g}",
                lambda x: softmax(x) / heat,
            ),
        ],
    )


def _filtered(formula: Formula, logits: Step) -> Step:
    """Add the filters that the sizes ask for."""
    share, count = formula.sizes.top_p, formula.sizes.top_k
    few = _most_likely(formula, logits, count)
    if share >= 1:
        return few
    whole = few if formula.choices.nucleus == "of-what-is-left" else logits
    shares = formula.step(
        "", "shares", softmax, whole, text="softmax of the logits", axes="BV", optional=whole is few
    )
    ranked = _optional(formula, "ranked shares", lambda x: -np.sort(-x, axis=-1), shares)
    _optional(formula, "sums of shares", lambda x: np.cumsum(x, axis=-1), ranked)
    return formula.step(
        "",
        "nucleus",
        lambda few, whole: np.where(top_p(softmax(whole), share) > 0, few, -np.inf),
        few,
        whole,
        text=f"logits of the fewest tokens that sum to top_p, where top_p = {share:g}",
        axes="BV",
        filled=True,
        mistakes=[
            Mistake(
                "logits without the token at which the sum reaches top_p",
                lambda few, whole: np.where(_before(whole, share), few, -np.inf),
            ),
            Mistake(
                "logits of the least likely tokens",
                lambda few, whole: np.where(top_p(softmax(-whole), share) > 0, few, -np.inf),
            ),
        ],
    )


def _before(logits: Array, share: float) -> Array:
    """Return which tokens come before the sum of the probabilities reaches the share."""
    found = softmax(logits)
    order = np.argsort(-found, axis=-1, kind="stable")
    sums = np.cumsum(np.take_along_axis(found, order, axis=-1), axis=-1)
    kept = np.zeros(found.shape, dtype=bool)
    np.put_along_axis(kept, order, sums <= share, axis=-1)
    return kept


def _optional(formula: Formula, name: str, compute: Compute, given: Step) -> Step:
    return formula.step("", name, compute, given, text=name, axes="BV", optional=True)


def _most_likely(formula: Formula, logits: Step, count: int) -> Step:
    """Add the logits of the `count` most likely tokens; 0 keeps all."""
    words = logits.value.shape[-1]
    if not 0 < count < words:
        return logits
    others = [
        Mistake(f"logits of {words} than top_k, where top_k = {count}", partial(_kept, number))
        for words, number in (("one more", count + 1), ("one less", count - 1))
    ]
    least = Mistake(
        "logits of the least likely tokens",
        lambda x: np.where(np.isfinite(top_k(-x, count)), x, -np.inf),
    )
    return formula.step(
        "",
        "most likely tokens",
        lambda x: top_k(x, count),
        logits,
        text=f"logits of the top_k most likely tokens, where top_k = {count}",
        axes="BV",
        filled=True,
        mistakes=[*others, least],
    )


def _kept(count: int, logits: Array) -> Array:
    return top_k(logits, count)
