"""Tiny random language models of transformers agree with the oracle, family by family."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
import transformers

from attentest_spec.choices import Choices, Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import shapes
from attentest_spec.profiles import PROFILES
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(
    d_model=32, heads=4, kv_heads=2, d_ff=24, layers=2, target_vocabulary=19, max_length=32
)
ROUNDED = {"rms_arithmetic": "float32", "softmax_arithmetic": "float32"}
"""The parts that transformers computes in float32 in a model of float64 (eager attention)."""


def profile(name: str, **changes: Value) -> dict[str, Value]:
    """Return the choices of a profile as transformers computes them in float64."""
    return {**PROFILES[name].choices, **ROUNDED, "rotary_arithmetic": "float32", **changes}


MODERN = profile("llama")
PLAIN = profile("neox", block_layout="sequential", rotary_width="whole")
LLAMA = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.o_proj",
    "self_attention_norm": "input_layernorm",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.inner": "mlp.up_proj",
    "feed_forward.outer": "mlp.down_proj",
}
OUTSIDE = {
    "embedding": "model.embed_tokens",
    "norm": "model.norm",
    "generator": "lm_head",
    "layers": "model.layers",
}
COMMON = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "vocab_size": 19,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
Read = Callable[[str, Mapping[str, Floats]], Floats]


@dataclass(frozen=True)
class Family:
    """A family of transformers: settings, choices, and names of the canonical parameters."""

    config: Mapping[str, object]
    choices: Mapping[str, Value]
    layer: Mapping[str, str] = field(default_factory=lambda: LLAMA)
    outside: Mapping[str, str] = field(default_factory=lambda: OUTSIDE)
    read: Read | None = None


def _packed_neox(name: str, held: Mapping[str, Floats]) -> Floats:
    """Return query, key or value of a packed projection whose rows are those of one head each."""
    path, part, leaf = name.rsplit(".", 2)
    packed = held[f"{path}.query_key_value.{leaf}"]
    rows = packed.reshape(4, 3, -1, *packed.shape[1:])
    return rows[:, ("query", "key", "value").index(part)].reshape(-1, *packed.shape[1:])


def _gpt2(name: str, held: Mapping[str, Floats]) -> Floats:
    """Return a parameter of GPT-2, whose matrices are (in, out) and query, key, value packed."""
    path, part, leaf = name.rsplit(".", 2)
    if part in ("query", "key", "value"):
        whole = held[f"{path}.c_attn.{leaf}"]
        slices = np.split(whole, 3, axis=-1)
        return slices[("query", "key", "value").index(part)].T
    return held[name].T


NEOX = {
    "self_attention.query": "attention.query",
    "self_attention.key": "attention.key",
    "self_attention.value": "attention.value",
    "self_attention.output": "attention.dense",
    "self_attention_norm": "input_layernorm",
    "feed_forward_norm": "post_attention_layernorm",
    "feed_forward.inner": "mlp.dense_h_to_4h",
    "feed_forward.outer": "mlp.dense_4h_to_h",
}
NEOX_OUTSIDE = {
    "embedding": "gpt_neox.embed_in",
    "norm": "gpt_neox.final_layer_norm",
    "generator": "lm_head",
    "layers": "gpt_neox.layers",
}
GPT2 = {
    "self_attention.query": "attn.query",
    "self_attention.key": "attn.key",
    "self_attention.value": "attn.value",
    "self_attention.output": "attn.c_proj",
    "self_attention_norm": "ln_1",
    "feed_forward_norm": "ln_2",
    "feed_forward.inner": "mlp.c_fc",
    "feed_forward.outer": "mlp.c_proj",
}
PHI = {
    **LLAMA,
    "self_attention.output": "self_attn.dense",
    "feed_forward.inner": "mlp.fc1",
    "feed_forward.outer": "mlp.fc2",
}
FAR = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
FAMILIES = {
    "llama": Family({}, MODERN),
    "llama-of-llama3-rule": Family(
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 4.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            }
        },
        {**MODERN, "rotary_base": 500000.0, "rotary_scaling": "llama3"},
    ),
    "mistral": Family({"sliding_window": SIZES.window}, profile("mistral")),
    "qwen2": Family(FAR, profile("qwen2")),
    "qwen3": Family(
        {**FAR, "head_dim": 8},
        profile("qwen3"),
        {
            **LLAMA,
            "self_attention.query_norm": "self_attn.q_norm",
            "self_attention.key_norm": "self_attn.k_norm",
        },
    ),
    "granite": Family({"attention_multiplier": 8**-0.5}, MODERN),
    "gemma": Family({"head_dim": 8, "tie_word_embeddings": True}, profile("gemma")),
    "gemma2": Family(
        {
            "head_dim": 8,
            "query_pre_attn_scalar": 8,
            "sliding_window": 64,
            "tie_word_embeddings": True,
        },
        profile("gemma2"),
        {
            **LLAMA,
            "self_attention_branch_norm": "post_attention_layernorm",
            "feed_forward_norm": "pre_feedforward_layernorm",
            "feed_forward_branch_norm": "post_feedforward_layernorm",
        },
    ),
    "gpt2": Family(
        {
            "n_embd": 32,
            "n_head": 4,
            "n_inner": 24,
            "n_layer": 2,
            "n_positions": 32,
            "tie_word_embeddings": True,
        },
        profile("gpt2", softmax_arithmetic="as-computed"),
        GPT2,
        {
            "embedding": "transformer.wte",
            "positions": "transformer.wpe",
            "norm": "transformer.ln_f",
            "generator": "lm_head",
            "layers": "transformer.h",
        },
        _gpt2,
    ),
    "gpt_neox": Family(
        {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}},
        profile("neox"),
        NEOX,
        NEOX_OUTSIDE,
        _packed_neox,
    ),
    "gpt_neox-sequential": Family(
        {
            "use_parallel_residual": False,
            "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5},
        },
        {**PLAIN, "rotary_width": 0.5},
        NEOX,
        NEOX_OUTSIDE,
        _packed_neox,
    ),
    "phi": Family(
        {
            "num_key_value_heads": 4,
            "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5},
        },
        {
            **PLAIN,
            "block_layout": "parallel-one-norm",
            "rotary_width": 0.5,
            "activation": "gelu-tanh",
            "generator_bias": "present",
        },
        PHI,
        {**OUTSIDE, "norm": "model.final_layernorm"},
    ),
    "starcoder2": Family(
        {"sliding_window": None, "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5},
        {**PLAIN, "key_heads": "fewer", "activation": "gelu-tanh"},
        {**LLAMA, "feed_forward.inner": "mlp.c_fc", "feed_forward.outer": "mlp.c_proj"},
    ),
}
"""Families by the type of their configuration, with a word after it where there are several."""


def built(name: str, attention: str) -> torch.nn.Module:
    """Return a tiny random model of the family in float64, norms and biases random too."""
    kind, _, _ = name.partition("-")
    epsilon = FAMILIES[name].choices.get("rms_epsilon", 1e-5)
    settings = {**COMMON, "rms_norm_eps": epsilon, **FAMILIES[name].config}
    config = transformers.AutoConfig.for_model(kind, **settings)
    config._attn_implementation = attention
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model


def canonical(name: str, model: torch.nn.Module) -> dict[str, Floats]:
    """Return the parameters of the model by canonical names."""
    family = FAMILIES[name]
    held = {key: one.detach().numpy() for key, one in model.state_dict().items()}
    leaves = {"gain": "weight"}
    found = {}
    for path in shapes("language_model", SIZES, Choices.of(family.choices)):
        part, _, leaf = path.rpartition(".")
        own = f"{_own(family, part)}.{leaves.get(leaf, leaf)}"
        in_layer = (family.read is not None and own not in held) or ".c_" in own
        found[path] = family.read(own, held) if in_layer and family.read else held[own]
    return found


def _own(family: Family, part: str) -> str:
    """Return the name of a canonical part in the model."""
    if not part.startswith("layers."):
        return family.outside[part]
    _, number, inner = part.split(".", 2)
    return f"{family.outside['layers']}.{number}.{family.layer[inner]}"


def sizes_of(model: torch.nn.Module) -> Sizes:
    """Return the sizes of the model, those of scaled rotary positions included."""
    rules = getattr(model.config, "rope_parameters", None) or {}
    trained = rules.get("original_max_position_embeddings", 32)
    return SIZES.but(trained_length=trained, rotary_factor=rules.get("factor", 1.0))


def answers(
    name: str,
    tokens: Array,
    mask: Array | None = None,
    positions: Array | None = None,
    attention: str = "eager",
) -> tuple[Floats, Floats]:
    """Return the logits (B, T, V) of the oracle and of the model."""
    model, choices = built(name, attention), Choices.of(FAMILIES[name].choices)
    if attention == "sdpa":
        choices = choices.but(softmax_arithmetic="as-computed")
    given = Setting(sizes_of(model), choices, canonical(name, model))
    with torch.no_grad():
        said = model(
            torch.from_numpy(tokens),
            attention_mask=None if mask is None else torch.from_numpy(mask).long(),
            position_ids=None if positions is None else torch.from_numpy(positions),
        ).logits.numpy()
    return language_model(given, tokens, mask, positions), said


@pytest.mark.parametrize("name", FAMILIES)
def test_family_gives_the_logits_of_the_oracle(name: str) -> None:
    tokens = np.random.default_rng(1).integers(0, 19, size=(3, 11))
    oracle, said = answers(name, tokens)
    assert np.abs(said).max() > 0.5
    np.testing.assert_allclose(oracle, said, rtol=0, atol=2e-5 * np.abs(said).max())


PADDED = [name for name in FAMILIES if name != "gemma2"]
"""Families with the attention of torch; that of the other one has no soft cap."""


@pytest.mark.parametrize("name", PADDED)
def test_family_agrees_on_padding_and_on_positions_that_differ_by_sequence(name: str) -> None:
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 19, size=(3, 9))
    mask = np.arange(9)[None] >= np.array([0, 2, 5])[:, None]
    positions = np.maximum(np.cumsum(mask, axis=1) - 1, 0) + np.array([[3], [0], [7]])
    # Eager attention computes the softmax of float64 in float32, where the fill of padding
    # is beyond the range: rows of padding are NaN there, and with them all of the sequence.
    oracle, said = answers(name, tokens, mask, positions, "sdpa")
    np.testing.assert_allclose(oracle[mask], said[mask], rtol=0, atol=2e-5 * np.abs(said).max())
