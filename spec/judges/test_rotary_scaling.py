"""The frequencies of scaled rotary positions agree with those of transformers, in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, modeling_rope_utils

from attentest_spec.choices import PAPER, Value
from attentest_spec.rotary import frequencies, magnitude
from attentest_spec.sizes import Sizes


class Wide:
    """Torch, with double precision under the names of single precision."""

    float = float32 = torch.float64

    def __getattr__(self, name: str) -> Any:
        """Return what torch has under that name."""
        return getattr(torch, name)


@pytest.fixture(autouse=True)
def in_double_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modeling_rope_utils, "torch", Wide())


RULES: dict[str, dict[str, Any]] = {
    "linear": {},
    "dynamic": {},
    "yarn": {},
    "llama3": {"low_freq_factor": 1.0, "high_freq_factor": 4.0},
}


@pytest.mark.parametrize("part", [1.0, 0.5])
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
@pytest.mark.parametrize("width", [8, 64, 128])
@pytest.mark.parametrize(("factor", "trained"), [(4.0, 2048), (8.0, 8192), (2.0, 64), (32.0, 4096)])
@pytest.mark.parametrize("rule", RULES)
def test_frequencies_of_scaled_positions_agree(
    rule: str, factor: float, trained: int, width: int, base: float, part: float
) -> None:
    config = LlamaConfig(
        hidden_size=4 * width,
        num_attention_heads=4,
        head_dim=width,
        max_position_embeddings=trained,
        rope_parameters={
            "rope_type": rule,
            "rope_theta": base,
            "factor": factor,
            "partial_rotary_factor": part,
            "original_max_position_embeddings": trained,
            **RULES[rule],
        },
    )
    scaled: dict[str, Value] = {"rotary_scaling": "dynamic-ntk" if rule == "dynamic" else rule}
    choices = PAPER.but(rotary_base=base, rotary_width=part if part < 1 else "whole", **scaled)
    sizes = Sizes(rotary_factor=factor, trained_length=trained)
    for length in (1, trained, 3 * trained):
        compute = modeling_rope_utils.ROPE_INIT_FUNCTIONS[rule]
        found, times = compute(config, torch.device("cpu"), seq_len=length)
        expected = frequencies(sizes, choices, width, length)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-13)
        assert times == pytest.approx(magnitude(sizes, choices), rel=1e-15)
