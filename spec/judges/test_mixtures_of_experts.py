"""Mixtures of experts of transformers' families agree with the oracle, whole blocks of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

from attentest_spec.choices import PAPER, Choices
from attentest_spec.choices.choice import Value
from attentest_spec.mapping import Place, Table, locate
from attentest_spec.mixture_of_experts import mixture_of_experts
from attentest_spec.parameters import draw
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=6, d_ff=5, experts=7, chosen_experts=3, shared_inner=4)

COMMON: Mapping[str, Any] = {
    "hidden_size": SIZES.d_model,
    "num_experts_per_tok": SIZES.chosen_experts,
    "hidden_act": "silu",
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts"), SIZES.experts),
    **dict.fromkeys(("intermediate_size", "moe_intermediate_size"), SIZES.d_ff),
}

EXPERTS: Table = {
    "router.weight": "gate.weight",
    "router.bias": "gate.e_score_correction_bias",
    "experts.*.gate.weight": Place("experts.gate_up_proj[*]", part=(0, 2)),
    "experts.*.inner.weight": Place("experts.gate_up_proj[*]", part=(1, 2)),
    "experts.*.outer.weight": Place("experts.down_proj[*]"),
}

SHARED = {"gate": "gate_proj", "inner": "up_proj", "outer": "down_proj"}


@dataclass(frozen=True)
class Family:
    """A block of `transformers.models`, its settings, and the choices that its authors made."""

    block: str
    config: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    choices: Mapping[str, Value] = field(default_factory=dict)
    shared: str = ""
    sizes: Sizes = SIZES

    def built(self) -> torch.nn.Module:
        """Return a new block in double precision, computed expert by expert."""
        package = f"transformers.models.{self.block.partition('.')[0]}"
        name = self.block.partition(".")[0]
        config = getattr(import_module(f"{package}.configuration_{name}"), self.config)(
            **{**COMMON, **self.settings}
        )
        config._experts_implementation = "eager"
        kind = self.block.partition(".")[2]
        module: torch.nn.Module = getattr(import_module(f"{package}.modeling_{name}"), kind)(config)
        return module.double().eval()

    def table(self) -> Table:
        """Return the places of the canonical parameters."""
        shared = {f"shared_expert.{own}": f"{self.shared}.{its}" for own, its in SHARED.items()}
        return {**EXPERTS, **shared, "shared_gate": "shared_expert_gate"}


SHARED_TWICE = SIZES.but(shared_inner=2 * SIZES.d_ff)
FAMILIES = {
    "mixtral": Family("mixtral.MixtralSparseMoeBlock", "MixtralConfig"),
    "qwen2_moe": Family(
        "qwen2_moe.Qwen2MoeSparseMoeBlock",
        "Qwen2MoeConfig",
        {"norm_topk_prob": False, "shared_expert_intermediate_size": SIZES.shared_inner},
        {"routing_weights": "as-scored", "shared_expert": "gated"},
        shared="shared_expert",
    ),
    "qwen3_moe": Family(
        "qwen3_moe.Qwen3MoeSparseMoeBlock", "Qwen3MoeConfig", {"norm_topk_prob": True}
    ),
    "olmoe": Family(
        "olmoe.OlmoeSparseMoeBlock",
        "OlmoeConfig",
        {"norm_topk_prob": False},
        {"routing_weights": "as-scored"},
    ),
    "deepseek_v2": Family(
        "deepseek_v2.DeepseekV2Moe",
        "DeepseekV2Config",
        {
            "topk_method": "greedy",
            "routed_scaling_factor": 16.0,
            "n_shared_experts": 2,
            "num_attention_heads": 1,
        },
        {"routing_weights": "as-scored", "routing_scale": 16.0, "shared_expert": "added"},
        shared="shared_experts",
        sizes=SHARED_TWICE,
    ),
    "deepseek_v3": Family(
        "deepseek_v3.DeepseekV3MoE",
        "DeepseekV3Config",
        {
            "norm_topk_prob": True,
            "routed_scaling_factor": 2.5,
            "n_shared_experts": 2,
            "n_group": 1,
            "topk_group": 1,
        },
        {
            "router_scores": "sigmoid",
            "router_bias": "in-choice-alone",
            "routing_scale": 2.5,
            "shared_expert": "added",
        },
        shared="shared_experts",
        sizes=SHARED_TWICE,
    ),
}


def choices_of(family: Family) -> Choices:
    return PAPER.but(
        feed_forward_gate="gated",
        feed_forward_bias="none",
        activation="silu",
        routing_arithmetic="float32",
        **family.choices,
    )


@pytest.mark.parametrize("name", FAMILIES)
def test_family_says_what_the_oracle_says(name: str) -> None:
    family = FAMILIES[name]
    rng, choices, block = np.random.default_rng(3), choices_of(family), family.built()
    parameters = draw("mixture_of_experts", family.sizes, choices, rng)
    if "router.bias" in parameters:
        parameters["router.bias"] *= 0.1
    held = {**dict(block.named_parameters()), **dict(block.named_buffers())}
    own = {one: value.detach() for one, value in held.items()}
    used = set()
    for one, values in parameters.items():
        place = locate(one, family.table())
        place.write(own, torch.from_numpy(values))
        used.add(place.stored)
    assert used == set(own), "the block has other parameters"
    x = rng.normal(size=(3, 5, family.sizes.d_model))
    with torch.no_grad():
        said = block(torch.from_numpy(x)).numpy()
    expected = mixture_of_experts(Setting(family.sizes, choices, parameters), x)
    size = np.abs(expected).max()
    np.testing.assert_allclose(said, expected, rtol=0, atol=2e-6 * size)
    exact = choices.but(routing_arithmetic="as-computed")
    finer = mixture_of_experts(Setting(family.sizes, exact, parameters), x)
    assert np.abs(said - finer).max() > 1e-10 * size, "it computes in float64"
