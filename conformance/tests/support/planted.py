"""Settings of decoder-only models, and single changes of them, for studies of identification."""

from attentest_spec.choices import Value
from attentest_spec.profiles import PROFILES

Settings = dict[str, Value]

BASE: Settings = {
    "block_norms": "pre",
    "final_norm": "present",
    "embedding_scale": "none",
    "output": "logits",
    "generator_bias": "none",
    "norm_kind": "rms",
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "rotary_pairs": "halves",
    "attention_causality": "built-in",
    "key_heads": "fewer",
    "feed_forward_gate": "gated",
    "feed_forward_bias": "none",
    "activation": "silu",
    "tying": "none",
    "projection_bias": "none",
}
"""A model as Llama, which all of `OPTIONS` change."""

CHANGES: dict[str, Settings] = {
    "layer-norm": {"norm_kind": "layer"},
    "one-plus-weight": {"rms_weight": "one-plus-weight"},
    "epsilon": {"rms_epsilon": 1e-5},
    "epsilon-outside": {"rms_epsilon_place": "added-to-rms"},
    "norms-after": {"block_norms": "post"},
    "norms-of-branches": {"block_norms": "post-branch"},
    "sandwich": {"block_norms": "sandwich"},
    "parallel": {"block_layout": "parallel-one-norm"},
    "parallel-two": {"block_layout": "parallel-two-norms"},
    "pairs": {"rotary_pairs": "adjacent"},
    "base": {"rotary_base": 500_000.0},
    "unusual-base": {"rotary_base": 123_456.0},
    "part": {"rotary_width": 0.5},
    "proportional": {"rotary_width": 0.5, "rotary_partial": "proportional"},
    "linear": {"rotary_scaling": "linear"},
    "llama3": {"rotary_scaling": "llama3"},
    "yarn": {"rotary_scaling": "yarn"},
    "window": {"attention_window": "with-query"},
    "scale": {"score_scale": 0.0883},
    "cap": {"score_cap": 50.0},
    "logit-cap": {"logit_cap": 30.0},
    "norms-of-heads": {"query_key_norm": "per-head"},
    "norms-of-projections": {"query_key_norm": "whole-projection"},
    "activation": {"activation": "gelu-tanh"},
    "embedding-scale": {"embedding_scale": "sqrt-d", "tying": "all-three"},
    "ntk": {"rotary_scaling": "ntk"},
    "dynamic": {"rotary_scaling": "dynamic-ntk"},
    "unit-length": {"query_key_norm": "unit-length", "score_scale": 8.0},
    "after-rotation": {"query_key_norm": "per-head", "query_key_norm_place": "after-rotation"},
    "biases": {"projection_bias": "all-but-output"},
    "alibi": {"attention_rotary": "none", "relative_bias": "alibi"},
    "beside": {"attention_window": "beside-query"},
    "backward": {"rotary_direction": "backward"},
    "buckets": {"attention_rotary": "none", "relative_bias": "buckets-of-the-past"},
    "float32": {"rms_arithmetic": "float32", "softmax_arithmetic": "float32"},
}
"""Settings that a model as Llama may have, by a short name."""

OPTIONS: dict[str, Settings] = {name: {**BASE, **one} for name, one in CHANGES.items()}
OPTIONS |= {
    f"as-{name}": {**one.choices, "attention_causality": "built-in"}
    for name, one in PROFILES.items()
    if name != "paper"
}
