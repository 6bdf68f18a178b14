"""The options of decoder-only models of x-transformers: their choices, and how sizes fill them."""

from collections.abc import Mapping
from typing import Any

from attentest_spec import Sizes, Unsupported
from attentest_spec.choices import Value

PLAIN: Mapping[str, Value] = {
    "norm_kind": "layer",
    "block_norms": "pre",
    "final_norm": "present",
    "norm_epsilon_place": "inside-root",
    "norm_variance": "biased",
    "norm_epsilon": 1e-5,
    "norm_bias": "none",
    "embedding_scale": "none",
    "positional_encoding": "learned-scaled",
    "padded_positions": "columns",
    "head_width": "d/h",
    "attention_causality": "built-in",
    "mask_fill": "exact",
    "softmax_arithmetic": "float32",
    "projection_bias": "none",
    "activation": "gelu",
    "feed_forward_gate": "none",
    "feed_forward_bias": "present",
    "output": "logits",
    "generator_bias": "none",
    "tying": "none",
    "cache_update": "functional",
    "cache_sessions": "independent",
}
"""The choices of a model without options."""

_OWN: Mapping[str, Mapping[str, Value]] = {
    "use_rmsnorm": {
        "norm_kind": "rms",
        "rms_epsilon_place": "floor-of-length",
        "rms_epsilon": 1e-12,
        "rms_weight": "one-plus-weight",
        "rms_bias": "none",
        "rms_arithmetic": "as-computed",
    },
    "sandwich_norm": {"block_norms": "sandwich"},
    "ff_glu": {"feed_forward_gate": "gated"},
    "ff_swish": {"activation": "silu"},
    "ff_relu_squared": {"activation": "relu-squared"},
    "rotary_pos_emb": {
        "positional_encoding": "none",
        "attention_rotary": "query-and-key",
        "rotary_pairs": "adjacent",
        "rotary_width": 0.5,
        "rotary_partial": "contiguous",
        "rotary_arithmetic": "float32",
    },
    "rotary_emb_dim": {"rotary_width": "whole"},
    "rotary_interpolation_factor": {"rotary_scaling": "linear"},
    "alibi_pos_bias": {"relative_bias": "alibi"},
    "attn_kv_heads": {"key_heads": "fewer"},
    "attn_max_attend_past": {"attention_window": "beside-query"},
    "attn_softclamp_logits": {"score_cap": 50.0},
    "attn_head_learned_sink": {"attention_sink": "per-head"},
    "attn_qk_norm": {
        "query_key_norm": "unit-length",
        "query_key_norm_place": "before-rotation",
        "score_scale": 10.0,
        "softmax_arithmetic": "as-computed",
    },
    "attn_flash": {"softmax_arithmetic": "as-computed"},
    "tie_embedding": {"tying": "target-and-output", "logit_scale": "inverse-sqrt-d"},
    "no_abs_pos_emb": {"positional_encoding": "none"},
}
"""The choices that an option makes."""

OUTSIDE = ("tie_embedding", "no_abs_pos_emb")
"""Options of the model around the stack of layers."""


def choices_of(options: tuple[str, ...]) -> dict[str, Value]:
    """Return the choices of a model with the `options`; ValueError for one that is not known."""
    found = dict(PLAIN)
    for name in options:
        if name not in _OWN:
            raise ValueError(f"{name} is no option that is judged; these are: {', '.join(_OWN)}.")
    for name, own in _OWN.items():  # in the order of the table: later ones change earlier ones
        found |= own if name in options else {}
    return found


def filled(options: tuple[str, ...], sizes: Sizes) -> dict[str, Any]:
    """Return the options of the stack of layers with their values at the sizes.

    Raises Unsupported for heads of which fewer than two pairs are turned: the library divides by
    the number of their columns less 2.
    """
    head = sizes.d_model // max(sizes.heads, 1)
    numbers = {
        "rotary_emb_dim": head,
        "rotary_interpolation_factor": sizes.rotary_factor,
        "attn_kv_heads": sizes.kv_heads or sizes.heads,
        "attn_max_attend_past": sizes.window,
    }
    if "rotary_pos_emb" in options:
        turned = head if "rotary_emb_dim" in options else head // 2
        if turned < 4 or turned % 2 or (turned < head and head % 2):
            raise Unsupported(f"{turned} of {head} columns of a head would be turned")
    return {name: numbers.get(name, True) for name in options if name not in OUTSIDE}
