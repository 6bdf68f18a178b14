"""The calls of the parts inside a component, reported by oracles and by torch modules."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attentest_spec.choices import PAPER, Choices
from attentest_spec.contract import Step, Traceable, Unsupported
from attentest_spec.linear import linear
from attentest_spec.mapping import Place, nested
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend

SIZES = Sizes(layers=2, target_vocabulary=11)
SOURCE, TARGET = np.array([[1, 2, 3], [4, 5, 0]]), np.array([[1, 2], [3, 4]])
NORM = {"gain": "weight", "bias": "bias"}
SHARED = {"norm_sharing": "shared", "projection_bias": "present"}


def observed(component: str, choices: Choices, *inputs: Any) -> tuple[Any, list[tuple[str, Any]]]:
    seen: list[tuple[str, Any]] = []
    parameters = draw(component, SIZES, choices, np.random.default_rng(1))
    given = Setting(
        SIZES, choices, parameters, observe=lambda path, _, output: seen.append((path, output))
    )
    return ORACLES[component](given, *inputs), seen


def test_part_reports_its_inputs_and_its_output() -> None:
    seen: list[Any] = []
    given = Setting(observe=lambda *report: seen.append(report)).under("one").under("two")
    given.report((1, 2), 3)
    assert seen == [("one.two", (1, 2), 3)]


def test_linear_map_reports_its_input_and_its_output() -> None:
    seen: list[Any] = []
    weight, x = np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[3.0, 4.0]])
    given = Setting(
        parameters={"query.weight": weight}, observe=lambda *report: seen.append(report)
    )
    linear(given, "query", x)
    ((path, (before,), after),) = seen
    assert (path, before.tolist(), after.tolist()) == ("query", [[3.0, 4.0]], [[6.0, 7.0]])


def test_oracles_report_every_part_under_its_canonical_name() -> None:
    _, seen = observed("model", PAPER.but(final_norm="present"), SOURCE, TARGET)
    names = [name for name, _ in seen]
    layer = [name for name in names if name.startswith("decoder.layers.1.")]
    assert names[:2] == ["source_embedding", "source_positions"]
    assert [name.removeprefix("decoder.layers.1.") for name in layer if name.count(".") == 3] == [
        "self_attention",
        "self_attention_norm",
        "cross_attention",
        "cross_attention_norm",
        "feed_forward",
        "feed_forward_norm",
    ]
    assert names[-4:] == ["decoder.layers.1", "decoder.norm", "decoder", "generator"]
    assert len(set(names)) == len(names)


def test_reports_of_the_oracles_equal_their_results() -> None:
    output, seen = observed("model", PAPER, SOURCE, TARGET)
    np.testing.assert_array_equal(seen[-1][1], output)


class Wrapped(nn.Module):
    """A norm inside a module that does more than the norm: doubles what comes out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inside = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Return twice the norm."""
        return 2.0 * self.inside(x)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """An encoder layer whose sublayers share a norm and whose attention is one map."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.query = nn.Linear(sizes.d_model, sizes.d_model)
        self.rest = nn.Linear(sizes.d_model, 3 * sizes.d_model)
        self.inner = nn.Linear(sizes.d_model, sizes.d_ff)
        self.outer = nn.Linear(sizes.d_ff, sizes.d_model)
        self.norm = Wrapped(sizes.d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return something of the shape of x."""
        x = self.norm(x + self.query(x) + self.rest(x)[..., : x.shape[-1]])
        return self.norm(x=x + self.outer(self.inner(x).relu()))  # type: ignore[no-any-return]


ATTENTION = {
    "query": "query",
    **{
        f"{name}.{kind}": Place(f"rest.{kind}", part=(number, 3))
        for number, name in enumerate(("key", "value", "output"))
        for kind in ("weight", "bias")
    },
}
LAYER = {
    **nested("self_attention", "", ATTENTION),
    **nested("self_attention_norm", "norm.inside", NORM),
    **nested("feed_forward", "", {"inner": "inner", "outer": "outer"}),
    **nested("feed_forward_norm", "norm.inside", NORM),
}


def steps(**tables: Any) -> list[Step]:
    torch.manual_seed(0)
    backend = TorchBackend(
        name="odd",
        title="an odd layer",
        choices=SHARED,
        recipes={
            "encoder_layer": Recipe(build=Layer, parameters=LAYER),
            **{name: Recipe(build=Layer, parameters=table) for name, table in tables.items()},
        },
    )
    part = backend.build("encoder_layer", SIZES)
    return part.steps((np.ones((1, 3, 6)), None))


def test_a_shared_norm_is_the_parts_that_share_it_in_turn() -> None:
    assert [(one.part, one.call) for one in steps()] == [
        ("self_attention.query", 0),
        ("self_attention_norm", 0),
        ("feed_forward.inner", 0),
        ("feed_forward.outer", 0),
        ("feed_forward_norm", 0),
    ]


def test_a_packed_map_and_a_part_spread_over_a_larger_module_are_left_out() -> None:
    names = {one.part for one in steps()}
    assert not names & {"self_attention", "self_attention.key", "feed_forward"}


def test_the_component_that_stands_alone_says_where_its_module_begins() -> None:
    (inside, *_), (whole, *_) = (
        [one for one in steps(**tables) if one.part == "self_attention_norm"]
        for tables in ({}, {"layer_norm": {"gain": "inside.weight", "bias": "inside.bias"}})
    )
    np.testing.assert_allclose(whole.output, 2.0 * inside.output)


def test_named_inputs_are_seen() -> None:
    last = steps()[-1]
    assert [one.shape for one in last.inputs] == [(1, 3, 6)]
    assert last.output.shape == (1, 3, 6)


def test_hooks_are_gone_afterwards() -> None:
    backend = TorchBackend(
        name="odd",
        title="",
        choices=SHARED,
        recipes={"encoder_layer": Recipe(build=Layer, parameters=LAYER)},
    )
    part = backend.build("encoder_layer", SIZES)
    assert isinstance(part, Traceable)
    part.steps((np.ones((1, 3, 6)), None))
    assert not any(one._forward_hooks for one in part.module.modules())


def test_a_function_has_no_steps() -> None:
    backend = TorchBackend(
        name="bare", title="", recipes={"causal_mask": Recipe(build=lambda sizes: torch.ones)}
    )
    part = backend.build("causal_mask", SIZES)
    with pytest.raises(Unsupported):
        part.steps((3,))
