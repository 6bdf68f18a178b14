"""The formulas of operations against what oracles and announced backends really multiply."""

from math import prod
from typing import Any

import numpy as np
import pytest
from own import OWN
from proof import share

from attentest.studies.comparison.inputs import inputs
from attentest.studies.cost import BOTH, FORWARD, Plan
from attentest.studies.cost.formulas import flops
from attentest.studies.cost.layers import layer_types
from attentest.studies.cost.plan import Point
from attentest.studies.cost.stand import Stand
from attentest_spec import COMPONENTS, Choices, Setting, registry
from attentest_spec.components import inside
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import count, draw
from attentest_spec.registry import LoadFailure

SMALL = {"lengths": (5,), "widths": (), "width": 12, "heads": 3, "batch": 2, "vocabulary": 17}
POINT = Point(5, 12)
PARTS = [name for name in COMPONENTS if name in inside("model")]
"""The components that are parts of a model: others are not multiplied or differentiated."""

MIXING = [name for name in OWN if "mixture_of_experts" in registry.load(name).components]


class Counting(np.ndarray):
    """An array that counts the operations of the matrix products it takes part in."""

    total = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *given: Any, **named: Any) -> Any:
        plain = [np.asarray(one) for one in given]
        named = {
            key: tuple(map(np.asarray, value))
            if key == "out"
            else np.asarray(value)
            if isinstance(value, np.ndarray)
            else value
            for key, value in named.items()
        }
        result = getattr(ufunc, method)(*plain, **named)
        if ufunc is np.matmul:
            Counting.total += 2 * prod(result.shape) * plain[0].shape[-1]
        return result.view(Counting) if isinstance(result, np.ndarray) else result


def counted_in_the_oracle(component: str, plan: Plan, choices: Choices) -> int:
    example = plan.example(POINT)
    held = draw(component, example.sizes, choices, np.random.default_rng(0))
    given = Setting(example.sizes, choices, {k: v.view(Counting) for k, v in held.items()})
    arrays = [
        one.view(Counting) if isinstance(one, np.ndarray) and one.dtype.kind == "f" else one
        for one in inputs(example, component)
    ]
    Counting.total = 0
    ORACLES[component](given, *arrays)
    return Counting.total


@pytest.mark.parametrize("head_width", ["d/h", "d"])
@pytest.mark.parametrize("component", PARTS)
def test_the_formula_is_what_the_oracle_multiplies(component: str, head_width: str) -> None:
    choices = Choices(head_width=head_width)
    plan = Plan(component=component, layers=2, **SMALL)  # type: ignore[arg-type]
    expected = flops(component, plan.work(POINT, choices))
    assert counted_in_the_oracle(component, plan, choices) == expected


@pytest.mark.parametrize("shared", ["none", "added", "gated"])
def test_a_mixture_multiplies_what_its_chosen_experts_do(shared: str) -> None:
    """The reference asks its router twice, for the choice and for the weights."""
    choices = Choices(shared_expert=shared, feed_forward_gate="gated")
    plan = Plan(component="mixture_of_experts", **SMALL)  # type: ignore[arg-type]
    work = plan.work(POINT, choices)
    router = 2 * work.rows * work.sizes.d_model * work.sizes.experts
    expected = flops("mixture_of_experts", work) + router
    assert counted_in_the_oracle("mixture_of_experts", plan, choices) == expected


@pytest.mark.parametrize("component", ["causal_layer", "language_model"])
@pytest.mark.parametrize("layout", ["sequential", "parallel-one-norm"])
def test_decoder_only_models_multiply_what_the_formula_says(component: str, layout: str) -> None:
    choices = Choices(norm_kind="rms", block_layout=layout, feed_forward_gate="gated")
    plan = Plan(component=component, layers=2, **SMALL)  # type: ignore[arg-type]
    expected = flops(component, plan.work(POINT, choices))
    assert counted_in_the_oracle(component, plan, choices) == expected


@pytest.mark.parametrize("name", MIXING)
def test_code_that_computes_all_experts_is_counted_with_all(name: str) -> None:
    """Of four experts two are chosen; sums of weighted outputs may be products, too."""
    stand = Stand(registry.load(name))
    plan = Plan(component="mixture_of_experts", **SMALL)  # type: ignore[arg-type]
    plan = plan.fitted({name: stand.facts()})
    counted = stand.holding(plan, POINT).flops[FORWARD]
    work = plan.work(POINT, stand.facts().choices)
    chosen = flops("mixture_of_experts", work)
    every = chosen + 2 * flops("feed_forward", work)
    assert counted is not None
    assert counted == chosen or every <= counted <= 1.1 * every


def test_most_components_multiply_something() -> None:
    work = Plan(**SMALL).work(POINT, Choices())  # type: ignore[arg-type]
    silent = {name for name in PARTS if not flops(name, work)}
    assert silent == {
        "padding_mask",
        "causal_mask",
        "target_mask",
        "positional_encoding",
        "embedding",
        "layer_norm",
        "rms_norm",
    }


@share(4)
@pytest.mark.parametrize("component", PARTS)
@pytest.mark.parametrize("name", registry.names())
def test_announced_backends_multiply_what_the_formula_says(name: str, component: str) -> None:
    try:
        backend = registry.load(name)
    except LoadFailure as failure:
        pytest.skip(str(failure))
    if component not in backend.components:
        pytest.skip(f"{name} provides no {component}")
    stand = Stand(backend)
    plan = Plan(component=component, layers=1, **SMALL)  # type: ignore[arg-type]
    plan = plan.fitted({name: stand.facts()})
    held = stand.holding(plan, Point(plan.length if not plan.lengths else plan.lengths[0], 12))
    forward = flops(component, plan.work(POINT, stand.facts().choices))
    expected = {FORWARD: forward, BOTH: 3 * forward}
    for which, counted in held.flops.items():
        assert counted in (None, expected[which])
    assert held.peaks == {which: [] for which in held.flops}, "it is not alone in this process"
    sizes = plan.sizes(12)
    assert held.parameters in (None, count(component, sizes, stand.facts().choices))


def test_table_1_of_the_paper() -> None:
    attention, recurrent, convolutional, restricted = layer_types(n=81, d=10, k=3, r=9)
    assert (attention.operations, attention.steps, attention.longest) == (65610, 1, 1)
    assert (recurrent.operations, recurrent.steps, recurrent.longest) == (8100, 81, 81)
    assert (convolutional.operations, convolutional.steps) == (24300, 1)
    assert convolutional.longest == pytest.approx(4, abs=1e-12)
    assert (restricted.operations, restricted.steps, restricted.longest) == (7290, 1, 9)
    assert layer_types(n=4, d=2, r=9)[3].operations == 4 * 4 * 2
