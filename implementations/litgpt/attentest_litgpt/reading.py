"""The design choices of a configuration of litgpt; all but the sizes are settings of it."""

from collections.abc import Mapping

from litgpt.config import Config

from attentest_spec.choices import Value

LINEAR = ("factor", "original_max_seq_len")
"""The settings of a rule that divides all frequencies by one factor."""

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
"""The two settings of the rule "llama3" that the specification has as constants."""


class NotJudged(ValueError):
    """Raised for a configuration whose design the specification does not describe."""


def choices_of(config: Config) -> dict[str, Value]:
    """Return the choices of a configuration; NotJudged, with the reason, where it has others."""
    _require_described(config)
    return {
        **_norms(config),
        **_attention(config),
        **_rotary(config),
        **_network(config),
        "block_norms": block_norms(config),
        "block_layout": _layout(config),
        "final_norm": "present",
        "embedding_scale": "sqrt-d" if config.scale_embeddings else "none",
        "positional_encoding": "none",
        "generator_bias": "present" if config.lm_head_bias else "none",
        "logit_cap": config.final_logit_softcapping or "none",
        "output": "logits",
        "tying": "none",
        "cache_update": "in-place",
        "cache_sessions": "one",
    }


def _require_described(config: Config) -> None:
    """Raise NotJudged for parts that the specification has no words for."""
    parts = {
        "experts": config.mlp_class_name == "LLaMAMoE",
        "latent attention": config.latent_attention is not None,
        "norms without a weight": config.norm_class_name == "LayerNorm" and "OLMo" in config.name,
        "layer norms of queries and keys": config.norm_qk and config.norm_class_name != "RMSNorm",
    }
    for name, present in parts.items():
        if present:
            raise NotJudged(f"{config.name or 'the configuration'} has {name}")


def _norms(config: Config) -> dict[str, Value]:
    if config.norm_class_name == "LayerNorm":
        return {
            "norm_kind": "layer",
            "norm_epsilon_place": "inside-root",
            "norm_variance": "biased",
            "norm_epsilon": config.norm_eps,
            "norm_bias": "present",
        }
    return {
        "norm_kind": "rms",
        "rms_epsilon_place": "inside-root",
        "rms_epsilon": config.norm_eps,
        "rms_weight": "one-plus-weight" if "Gemma" in config.name else "weight",
        "rms_bias": "none",
        "rms_arithmetic": "float32",
        "rms_cast": "after-weight",
    }


def block_norms(config: Config) -> str:
    """Return the option of the norms of a block."""
    before = {bool(config.norm_1), bool(config.norm_2)}
    after = {bool(config.post_attention_norm), bool(config.post_mlp_norm)}
    if len(before) > 1 or len(after) > 1 or before == after == {False}:
        raise NotJudged("the norms of attention and of the network are at different places")
    if before == after:
        return "sandwich"
    if before == {False} and config.shared_attention_norm:
        raise NotJudged("the shared norm of its sublayers is none")
    return "pre" if before == {True} else "post-branch"


def _layout(config: Config) -> str:
    if not config.parallel_residual:
        return "sequential"
    return "parallel-one-norm" if config.shared_attention_norm else "parallel-two-norms"


def _attention(config: Config) -> dict[str, Value]:
    capped = config.attention_logit_softcapping is not None
    scalar = config.attention_scores_scalar
    norm = {"default": "per-head", "olmo2": "whole-projection"}[config.norm_qk_type]
    return {
        "head_width": "d/h",
        "key_heads": "fewer" if config.n_query_groups < config.n_head else "as-queries",
        "attention_causality": "built-in",
        "attention_window": "with-query" if is_windowed(config) else "none",
        "projection_bias": _biases(config),
        "query_key_norm": norm if config.norm_qk else "none",
        "query_key_norm_place": "before-rotation",
        "score_scale": scalar**-0.5 if scalar else "inverse-sqrt-e",
        "score_cap": config.attention_logit_softcapping if capped else "none",
        "mask_fill": "exact",
        "softmax_arithmetic": "float32" if capped else "as-computed",
    }


def is_windowed(config: Config) -> bool:
    """Say whether all layers have a window: layers of both kinds are judged without one."""
    return config.sliding_window_size is not None and all(config.sliding_window_indices)


def _biases(config: Config) -> str:
    if config.bias:
        return "present"
    return "all-but-output" if config.attn_bias else "none"


def _rotary(config: Config) -> dict[str, Value]:
    if config.rotary_percentage == 0:
        return {"attention_rotary": "none"}
    return {
        "attention_rotary": "query-and-key",
        "rotary_pairs": "adjacent" if config.rope_interleave else "halves",
        "rotary_base": float(config.rope_base),
        "rotary_width": "whole" if config.rotary_percentage == 1 else config.rotary_percentage,
        "rotary_partial": "contiguous",
        "rotary_scaling": scaling(config),
        "rotary_arithmetic": "float32",
    }


def scaling(config: Config) -> str:
    """Return the option of `rotary_scaling`; NotJudged for rules that are none."""
    rule: Mapping[str, float] = config.rope_adjustments or {}
    if other := sorted(set(rule) - set(LINEAR) - set(LLAMA3)):
        raise NotJudged(f"its rotary positions are scaled with {', '.join(other)}")
    if rule and config.rope_condense_ratio != 1:
        raise NotJudged("its rotary positions are scaled by two rules")
    if not set(rule) & set(LLAMA3):
        return "linear" if rule or config.rope_condense_ratio != 1 else "none"
    if {name: rule.get(name) for name in LLAMA3} != LLAMA3:
        raise NotJudged("its bands of wavelengths are not those of llama3")
    return "llama3"


def _network(config: Config) -> dict[str, Value]:
    gelu = "gelu-tanh" if config.gelu_approximate == "tanh" else "gelu"
    return {
        "activation": "silu" if config.mlp_class_name == "LLaMAMLP" else gelu,
        "feed_forward_gate": "none" if config.mlp_class_name == "GptNeoxMLP" else "gated",
        "feed_forward_bias": "present" if config.bias else "none",
    }
