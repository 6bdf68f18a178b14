"""The backend of the decoder-only design: how its parts are built, called and named."""

from torch import Tensor

from attentest_modern import model
from attentest_spec import Limits, Sizes, nested
from attentest_spec.torch import Recipe, TorchBackend, cached_language_model

HEADS = {"query": "wq", "key": "wk", "value": "wv", "output": "wo"}
FEED_FORWARD = {"gate": "w1", "inner": "w3", "outer": "w2"}
EXPERTS = {"router": "gate", **nested("experts.*", "experts.*", FEED_FORWARD)}
NORM = {"gain": "weight"}
BLOCK = {
    **nested("self_attention", "attention", HEADS),
    **nested("self_attention_norm", "attention_norm", NORM),
    **nested("feed_forward", "feed_forward", FEED_FORWARD),
    **nested("feed_forward_norm", "ffn_norm", NORM),
}
MODEL = {
    "embedding": "tok_embeddings",
    **nested("layers.*", "layers.*", BLOCK),
    **nested("norm", "norm", NORM),
    "generator": "output",
}


def _settings(sizes: Sizes) -> model.Settings:
    return model.Settings(
        sizes.d_model,
        sizes.heads,
        sizes.kv_heads,
        sizes.d_ff,
        sizes.layers,
        sizes.target_vocabulary,
    )


def _language_model(sizes: Sizes) -> model.LanguageModel:
    return model.LanguageModel(_settings(sizes))


def _attention(sizes: Sizes) -> model.Attention:
    return model.Attention(model.Settings(sizes.d_model, sizes.heads, sizes.kv_heads))


def _attend(
    built: model.Attention,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    positions: Tensor | None = None,
) -> Tensor:
    """Attend from one sequence to itself: the limits say that all three are one."""
    output: Tensor = built(query, mask, positions)
    return output


def _experts(sizes: Sizes) -> model.Experts:
    return model.Experts(sizes.d_model, sizes.d_ff, sizes.experts, sizes.chosen_experts)


Past = list[model.KeyValue]


def _start(built: model.LanguageModel, rows: int) -> Past:
    """Return the past of texts without tokens."""
    return []


def _step(
    built: model.LanguageModel,
    past: Past,
    tokens: Tensor,
    keep: Tensor | None,
    positions: Tensor | None,
) -> tuple[Tensor, Past]:
    return built.continued(tokens, keep, positions, past)


def _reorder(built: model.LanguageModel, past: Past, rows: Tensor) -> Past:
    return [(key[rows], value[rows]) for key, value in past]


backend = TorchBackend(
    name="modern",
    title="decoder-only: RMS norms, rotary positions, gated networks, shared heads",
    choices={
        "rms_epsilon_place": "inside-root",
        "rms_epsilon": 1e-5,
        "rms_weight": "weight",
        "rms_bias": "none",
        "rms_arithmetic": "as-computed",
        "rms_cast": "before-weight",
        "feed_forward_gate": "gated",
        "feed_forward_bias": "none",
        "activation": "silu",
        "router_scores": "softmax",
        "routing_weights": "renormalised",
        "router_bias": "none",
        "shared_expert": "none",
        "routing_scale": "none",
        "routing_arithmetic": "as-computed",
        "head_width": "d/h",
        "key_heads": "fewer",
        "attention_causality": "built-in",
        "projection_bias": "none",
        "mask_fill": "exact",
        "norm_kind": "rms",
        "block_norms": "pre",
        "final_norm": "present",
        "embedding_scale": "none",
        "positional_encoding": "none",
        "attention_rotary": "query-and-key",
        "rotary_pairs": "adjacent",
        "rotary_base": 500_000.0,
        "generator_bias": "none",
        "output": "logits",
        "tying": "none",
        "cache_update": "functional",
        "cache_sessions": "independent",
    },
    limits=Limits(dropout=False, cross=False),
    recipes={
        "multi_head_attention": Recipe(build=_attention, call=_attend, parameters=HEADS),
        "rms_norm": Recipe(
            build=lambda sizes: model.RMSNorm(sizes.d_model), parameters={"gain": "weight"}
        ),
        "feed_forward": Recipe(
            build=lambda sizes: model.FeedForward(sizes.d_model, sizes.d_ff),
            parameters=FEED_FORWARD,
        ),
        "mixture_of_experts": Recipe(build=_experts, parameters=EXPERTS),
        "causal_layer": Recipe(build=lambda sizes: model.Block(_settings(sizes)), parameters=BLOCK),
        "language_model": Recipe(build=_language_model, parameters=MODEL),
        "cached_language_model": cached_language_model(
            _language_model, start=_start, step=_step, reorder=_reorder, parameters=MODEL
        ),
    },
)
