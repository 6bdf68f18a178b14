"""The choices of x-transformers, and its names for the canonical parameters."""

from collections.abc import Mapping

from attentest_spec import Place, Table, nested
from attentest_spec.choices import Value

CHOICES: Mapping[str, Value] = {
    "norm_placement": "pre",
    "final_norm": "present",
    "norm_epsilon_place": "inside-root",
    "norm_variance": "biased",
    "norm_epsilon": 1e-5,
    "norm_bias": "none",
    "norm_sharing": "separate",
    "embedding_scale": "none",
    "positional_encoding": "learned-scaled",
    "head_width": "d/h",
    "mask_fill": "exact",
    "fully_masked_row": "zero",
    "softmax_arithmetic": "float32",
    "activation": "gelu",
    "projection_bias": "none",
    "output": "logits",
    "generator_bias": "none",
    "tying": "embeddings",
}

LAYERS = 24
"""The largest number of mapped layers: the library numbers sublayers, not layers."""

EMBEDDING: Table = {"weight": "emb.weight"}
HEADS: Table = {"query": "to_q", "key": "to_k", "value": "to_v", "output": "to_out"}
NORM: Table = {"gain": Place("gamma", plus=1.0)}
FEED_FORWARD: Table = {"inner": "ff.0.0", "outer": "ff.2"}
ENCODING = {"self_attention": HEADS, "feed_forward": FEED_FORWARD}
DECODING = {"self_attention": HEADS, "cross_attention": HEADS, "feed_forward": FEED_FORWARD}


def _layer(sublayers: Mapping[str, Table], first: int = 0) -> Table:
    """Return the map of a layer whose first sublayer has the number `first`."""
    table: dict[str, str | Place] = {}
    for number, (name, own) in enumerate(sublayers.items(), first):
        table |= nested(f"{name}_norm", f"layers.{number}.0.0", NORM)
        table |= nested(name, f"layers.{number}.1", own)
    return table


def _stack(sublayers: Mapping[str, Table]) -> Table:
    table = nested("norm", "final_norm", NORM)
    for number in range(LAYERS):
        table |= nested(f"layers.{number}", "", _layer(sublayers, number * len(sublayers)))
    return table


ENCODER_LAYER, DECODER_LAYER = _layer(ENCODING), _layer(DECODING)
ENCODER, DECODER = _stack(ENCODING), _stack(DECODING)
MODEL: Table = {
    "source_embedding": "encoder.token_emb.emb",
    "target_embedding": "decoder.net.token_emb.emb",
    "source_positions": "encoder.pos_emb.emb",
    "target_positions": "decoder.net.pos_emb.emb",
    "generator": "decoder.net.to_logits",
    **nested("encoder", "encoder.attn_layers", ENCODER),
    **nested("decoder", "decoder.net.attn_layers", DECODER),
}
