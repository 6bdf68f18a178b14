"""The choices inside attention agree with families of transformers and their bias builders."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import AutoConfig, masking_utils
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention

from attentest_spec.choices import PAPER, Value
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.order import own_mask
from attentest_spec.parameters import draw
from attentest_spec.relative_bias import buckets, slopes
from attentest_spec.rotary import turns
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

torch.set_num_threads(1)

SIZES = Sizes(d_model=32, heads=4, kv_heads=2)
COMMON: dict[str, Value] = {
    "attention_rotary": "query-and-key",
    "rotary_pairs": "halves",
    "key_heads": "fewer",
    "rms_epsilon": 1e-6,
}
GEMMA: dict[str, Value] = {"rms_weight": "one-plus-weight", "score_scale": 24.0**-0.5}
FAMILIES: dict[str, tuple[dict[str, Value], dict[str, Any]]] = {
    "llama": ({}, {}),
    "mistral": ({}, {}),
    "qwen3": ({"query_key_norm": "per-head"}, {}),
    "olmo2": ({"query_key_norm": "whole-projection"}, {}),
    "hunyuan_v1_dense": (
        {"query_key_norm": "per-head", "query_key_norm_place": "after-rotation"},
        {},
    ),
    "gemma2": (
        {**GEMMA, "score_cap": 2.0},
        {"attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 24},
    ),
    "gemma3_text": ({**GEMMA, "query_key_norm": "per-head"}, {"query_pre_attn_scalar": 24}),
    "granite": ({"score_scale": 0.3}, {"attention_multiplier": 0.3}),
}
"""For each type of model its choices, and the settings that stand for them."""

PLACES = {
    "query.weight": "q_proj.weight",
    "key.weight": "k_proj.weight",
    "value.weight": "v_proj.weight",
    "output.weight": "o_proj.weight",
    "query_norm.gain": ("q_norm.weight", "query_layernorm.weight"),
    "key_norm.gain": ("k_norm.weight", "key_layernorm.weight"),
}


def built(name: str, settings: dict[str, Any]) -> Any:
    """Return the attention of the first layer of a tiny model of the family, in float64."""
    config = AutoConfig.for_model(
        name,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_hidden_layers=2,
        rms_norm_eps=1e-6,
        attention_bias=False,
        **settings,
    )
    config._attn_implementation = "eager"
    folder = name.removesuffix("_text")
    module = import_module(f"transformers.models.{folder}.modeling_{folder}")
    kinds = (one for one in vars(module) if one.endswith("Attention") and folder[:4] in one.lower())
    kind = getattr(module, min(kinds, key=len))
    return kind(config, layer_idx=0).double().eval()


def load(module: Any, parameters: dict[str, Floats]) -> None:
    """Load canonical parameters."""
    own = module.state_dict()
    for name, values in parameters.items():
        places = PLACES[name]
        place = next(one for one in np.atleast_1d(places) if one in own)
        own[place] = torch.from_numpy(values)
    module.load_state_dict(own)


@pytest.mark.parametrize("name", FAMILIES)
def test_attention_of_a_family_agrees(name: str) -> None:
    options, settings = FAMILIES[name]
    choices = PAPER.but(**{**COMMON, **options}, attention_causality="built-in")
    rng = np.random.default_rng(5)
    parameters = draw("multi_head_attention", SIZES, choices, rng)
    given, module = Setting(SIZES, choices, parameters), built(name, settings)
    load(module, parameters)
    x, positions = (
        3.0 * rng.normal(size=(2, 6, 32)),
        np.array([[0, 1, 2, 3, 4, 5], [7, 8, 9, 2, 3, 4]]),
    )
    cosines, sines = (torch.from_numpy(np.tile(one, 2)) for one in turns(given, positions, 8))
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    mask = torch.zeros(2, 1, 6, 6, dtype=torch.float64).masked_fill(hidden, float("-inf"))
    with torch.no_grad():
        found = module(
            torch.from_numpy(x), position_embeddings=(cosines, sines), attention_mask=mask
        )
    expected = multi_head_attention(given, x, x, x, None, positions)
    # A softmax, a norm and a rotation may be in single precision there.
    np.testing.assert_allclose(found[0].numpy(), expected, atol=2e-6)


@pytest.mark.parametrize("window", [1, 2, 5])
def test_windows_agree(window: int) -> None:
    inside = masking_utils.sliding_window_causal_mask_function(window)
    found = [
        [bool(inside(0, 0, torch.tensor(q), torch.tensor(k))) for k in range(9)] for q in range(9)
    ]
    choices = PAPER.but(attention_causality="built-in", attention_window="with-query")
    expected = own_mask(Setting(Sizes(window=window), choices), 9, 9)
    assert expected is not None
    assert (found == expected[0, 0]).all()


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 8, 12, 20, 40, 64])
def test_slopes_agree(heads: int) -> None:
    mask = torch.ones(1, 5)
    bloom = build_alibi_tensor(mask, heads, torch.float64).reshape(heads, 5)
    mpt = build_mpt_alibi_tensor(heads, 5).double().reshape(heads, 5)
    for bias in (bloom, mpt):
        steps: Tensor = bias[:, 1:] - bias[:, :-1]
        np.testing.assert_allclose(steps.numpy(), slopes(heads)[:, None] * np.ones(4), rtol=1e-6)


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize(("count", "farthest"), [(32, 128), (16, 64), (8, 20), (64, 512)])
def test_buckets_agree(count: int, farthest: int, both: bool) -> None:
    ahead: Array = np.arange(-600, 601)[None]
    found = T5Attention._relative_position_bucket(torch.from_numpy(ahead), both, count, farthest)
    assert (found.numpy() == buckets(ahead, count, farthest, both=both)).all()
