"""The oracle of a mixture of experts against values by hand, laws, and another way to write it."""

import math

import numpy as np
import pytest

from attentest_spec.choices import CHOICES, PAPER, Value
from attentest_spec.feed_forward import feed_forward
from attentest_spec.mixture_of_experts import mixture_of_experts
from attentest_spec.parameters import count, draw, shapes
from attentest_spec.setting import Floats, Setting
from attentest_spec.sizes import Sizes

GATED: dict[str, Value] = {
    "feed_forward_gate": "gated",
    "activation": "silu",
    "feed_forward_bias": "none",
}
OPTIONS = [
    (name, option.name)
    for name in ("router_scores", "routing_weights", "router_bias", "shared_expert")
    for option in CHOICES[name].options
]


def by_hand(chosen: int = 2, bias: tuple[float, ...] = (), **choices: Value) -> Setting:
    """Return three experts of one column that return x, 10 x and 100 x, in both signs."""
    held = {"router.weight": np.log([[1.0], [2.0], [4.0]])}
    for number in range(3):
        held[f"experts.{number}.inner.weight"] = np.array([[1.0], [-1.0]])
        held[f"experts.{number}.outer.weight"] = 10.0**number * np.array([[1.0, -1.0]])
    if bias:
        held["router.bias"] = np.array(bias)
    sizes = Sizes(d_model=1, d_ff=2, experts=3, chosen_experts=chosen)
    return Setting(sizes, PAPER.but(feed_forward_bias="none", **choices), held)


def value(given: Setting, x: float = 1.0) -> float:
    return float(mixture_of_experts(given, np.array([[x]]))[0, 0])


def test_worked_values_of_the_chapter() -> None:
    assert value(by_hand()) == pytest.approx(70.0, rel=1e-14)
    assert value(by_hand(), -1.0) == pytest.approx(-4.0, rel=1e-14)
    assert value(by_hand(routing_weights="as-scored")) == pytest.approx(60.0, rel=1e-14)
    assert value(by_hand(3)) == pytest.approx(421 / 7, rel=1e-14)
    assert value(by_hand(1)) == 100.0
    sigmoid = by_hand(router_scores="sigmoid")
    assert value(sigmoid) == pytest.approx(650 / 11, rel=1e-14)
    aside = by_hand(2, (1.0, 0.0, 0.0), router_scores="sigmoid", router_bias="in-choice-alone")
    assert value(aside) == pytest.approx(805 / 13, rel=1e-14)


def test_bias_of_the_logits_is_in_scores_and_choice() -> None:
    logits = by_hand(2, (math.log(8.0), 0.0, 0.0), router_bias="in-scores")
    assert value(logits) == pytest.approx((8 * 1 + 4 * 100) / 12, rel=1e-14)


def test_scale_multiplies_the_experts_and_not_the_shared_one() -> None:
    assert value(by_hand(routing_scale=2.5)) == pytest.approx(175.0, rel=1e-14)
    shared = by_hand(routing_scale=2.5, shared_expert="added")
    more = {
        "shared_expert.inner.weight": np.array([[1.0], [-1.0]]),
        "shared_expert.outer.weight": np.array([[7.0, -7.0]]),
    }
    both = Setting(shared.sizes, shared.choices, {**shared.parameters, **more})
    assert value(both) == pytest.approx(182.0, rel=1e-14)


def test_shared_expert_has_its_own_width_and_gate() -> None:
    choices = PAPER.but(shared_expert="gated", **GATED)
    sizes = Sizes(d_model=4, d_ff=7, experts=3, shared_inner=5)
    table = shapes("mixture_of_experts", sizes, choices)
    assert table["shared_expert.gate.weight"] == (5, 4)
    assert table["shared_gate.weight"] == (1, 4)
    assert count("mixture_of_experts", sizes, choices) == 3 * 4 + 3 * 3 * 28 + 3 * 20 + 4


def dense(given: Setting, x: Floats) -> Floats:
    """Return the output by all experts at all positions, with weights of 0 for most."""
    sizes, choices = given.sizes, given.choices
    logits = np.einsum("bsd,md->bsm", x, given["router.weight"])
    bias = given.get("router.bias")
    if choices.router_bias == "in-scores":
        logits = logits + bias
    raw = np.exp(logits)
    scores = raw / raw.sum(-1, keepdims=True)
    if choices.router_scores == "sigmoid":
        scores = raw / (1.0 + raw)
    ranked = scores + (bias if choices.router_bias == "in-choice-alone" else 0.0)
    least = np.sort(ranked, axis=-1)[..., -sizes.chosen_experts, None]
    weights = np.where(ranked >= least, scores, 0.0)
    if choices.routing_weights == "renormalised":
        weights = weights / weights.sum(-1, keepdims=True)
    experts = [feed_forward(given.under(f"experts.{n}"), x) for n in range(sizes.experts)]
    mixed: Floats = np.einsum("bsm,mbsd->bsd", weights, np.stack(experts))
    if choices.shared_expert != "none":
        shared = feed_forward(given.under("shared_expert"), x)
        gate = (
            1.0 / (1.0 + np.exp(-x @ given["shared_gate.weight"].T))
            if (choices.shared_expert == "gated")
            else 1.0
        )
        mixed = mixed + gate * shared
    return mixed


@pytest.mark.parametrize(("name", "option"), OPTIONS)
def test_equals_the_dense_mixture_with_zero_weights(
    rng: np.random.Generator, name: str, option: str
) -> None:
    choices = PAPER.but(**{name: option, **GATED})
    sizes = Sizes(d_model=5, d_ff=7, experts=6, chosen_experts=3)
    given = Setting(sizes, choices, draw("mixture_of_experts", sizes, choices, rng))
    x = rng.normal(size=(3, 4, 5))
    np.testing.assert_allclose(mixture_of_experts(given, x), dense(given, x), atol=1e-13)


def test_single_precision_rounds_the_weights_alone(rng: np.random.Generator) -> None:
    sizes = Sizes(d_model=5, d_ff=7)
    given = Setting(sizes, PAPER, draw("mixture_of_experts", sizes, PAPER, rng))
    single = Setting(sizes, PAPER.but(routing_arithmetic="float32"), given.parameters)
    x = rng.normal(size=(3, 4, 5))
    exact, rounded = mixture_of_experts(given, x), mixture_of_experts(single, x)
    assert rounded.dtype == np.float64
    assert 1e-10 < np.abs(exact - rounded).max() < 1e-6


def test_exactly_k_of_equal_scores_are_chosen(rng: np.random.Generator) -> None:
    sizes = Sizes(d_model=5, d_ff=7)
    held = draw("mixture_of_experts", sizes, PAPER, rng)
    held["router.weight"] = np.zeros((4, 5))
    given = Setting(sizes, PAPER, held)
    x = rng.normal(size=(2, 3, 5))
    experts = [feed_forward(given.under(f"experts.{number}"), x) for number in (0, 1)]
    np.testing.assert_allclose(mixture_of_experts(given, x), sum(experts) / 2, atol=1e-14)


@pytest.mark.parametrize("scores", ["softmax", "sigmoid"])
def test_large_logits_are_finite(scores: str) -> None:
    given = by_hand(router_scores=scores)
    with np.errstate(all="raise", under="ignore"):
        assert value(given, 1e4) == pytest.approx({"softmax": 1e6, "sigmoid": 55e4}[scores])
