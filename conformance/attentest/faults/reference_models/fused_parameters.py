"""The parameters of the reference model `fused`: packed, and transposed."""

from collections.abc import Mapping

from attentest_spec import Place, Table, nested

_LINEAR: Table = {"weight": Place("matrix", transpose=True), "bias": "offset"}
_NORM: Table = {"gain": "scale", "bias": "shift"}
_POSITIONS: Table = {"weight": "rows"}
_EMBEDDING: Table = {"weight": "table"}
_GENERATOR: Table = {"weight": "table", "bias": "offset"}
_FEED_FORWARD: Table = {
    **nested("gate", "gate", _LINEAR),
    **nested("inner", "inner", _LINEAR),
    **nested("outer", "outer", _LINEAR),
}
_EXPERTS: Table = {
    **nested("router", "router", _LINEAR),
    **{
        f"experts.*.{name}.{leaf}": Place(f"{name}_{own}[*]", transpose=leaf == "weight")
        for name in ("gate", "inner", "outer")
        for leaf, own in (("weight", "matrices"), ("bias", "offsets"))
    },
    **nested("shared_expert", "shared_expert", _FEED_FORWARD),
    **nested("shared_gate", "shared_gate", _LINEAR),
}
PACKED = ("query", "key", "value")
_MULTI_HEAD: Table = {
    **{f"{one}.weight": Place("packed_weight", span=one) for one in PACKED},
    **{f"{one}.bias": f"{one}_bias" for one in PACKED},  # the key alone may have none
    **nested("output", "output", _LINEAR),
    **nested("query_norm", "query_norm", _NORM),
    **nested("key_norm", "key_norm", _NORM),
    "relative_bias.weight": "relative_bias.table",
    "sink.score": "sink.scores",
}
_LAYER: Table = {
    **nested("self_attention", "self_attention", _MULTI_HEAD),
    **nested("self_attention_norm", "self_attention_norm", _NORM),
    **nested("cross_attention", "cross_attention", _MULTI_HEAD),
    **nested("cross_attention_norm", "cross_attention_norm", _NORM),
    **nested("feed_forward", "feed_forward", _FEED_FORWARD),
    **nested("feed_forward_norm", "feed_forward_norm", _NORM),
}
_STACK: Table = {**nested("layers.*", "layers.*", _LAYER), **nested("norm", "norm", _NORM)}
_BLOCK: Table = {
    name: place
    for part, table in (("self_attention", _MULTI_HEAD), ("feed_forward", _FEED_FORWARD))
    for end, inner in (("", table), ("_norm", _NORM), ("_branch_norm", _NORM))
    for name, place in nested(f"{part}{end}", f"{part}{end}", inner).items()
}
_LANGUAGE_MODEL: Table = {
    name: place
    for part, table in (
        *(("embedding", _EMBEDDING), ("positions", _POSITIONS), ("embedding_norm", _NORM)),
        *(("layers.*", _BLOCK), ("norm", _NORM), ("generator", _GENERATOR)),
    )
    for name, place in nested(part, part, table).items()
}

TABLES: Mapping[str, Table] = {
    "multi_head_attention": _MULTI_HEAD,
    "positional_encoding": _POSITIONS,
    "embedding": _EMBEDDING,
    "layer_norm": _NORM,
    "rms_norm": _NORM,
    "feed_forward": _FEED_FORWARD,
    "mixture_of_experts": _EXPERTS,
    "residual": nested("norm", "norm", _NORM),
    "encoder_layer": _LAYER,
    "decoder_layer": _LAYER,
    "encoder": _STACK,
    "decoder": _STACK,
    "generator": _GENERATOR,
    "model": {
        **nested("source_embedding", "source_embedding", _EMBEDDING),
        **nested("target_embedding", "target_embedding", _EMBEDDING),
        **nested("source_positions", "source_positions", _POSITIONS),
        **nested("target_positions", "target_positions", _POSITIONS),
        **nested("source_embedding_norm", "source_embedding_norm", _NORM),
        **nested("target_embedding_norm", "target_embedding_norm", _NORM),
        **nested("encoder", "encoder", _STACK),
        **nested("decoder", "decoder", _STACK),
        **nested("generator", "generator", _GENERATOR),
    },
    "causal_layer": _BLOCK,
    "language_model": _LANGUAGE_MODEL,
}
"""The table of every component that has parameters."""
