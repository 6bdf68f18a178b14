"""The adapter: how the parts of the model are built, called and named."""

from torch import Tensor, nn

from attentest_spec import Limits, Sizes, nested
from attentest_spec.torch import Recipe, TorchBackend

from . import model

# The parameter map: canonical names on the left, the names in model.py on the right.
PROJECTIONS = {"query": "query", "key": "key", "value": "value", "output": "output"}
NORM = {"gain": "weight", "bias": "bias"}
FEED_FORWARD = {"inner": "inner", "outer": "outer"}
ENCODER_LAYER = {
    **nested("self_attention", "attention", PROJECTIONS),
    **nested("self_attention_norm", "attention_norm", NORM),
    **nested("feed_forward", "feed_forward", FEED_FORWARD),
    **nested("feed_forward_norm", "feed_forward_norm", NORM),
}
DECODER_LAYER = {
    **ENCODER_LAYER,
    **nested("cross_attention", "cross_attention", PROJECTIONS),
    **nested("cross_attention_norm", "cross_attention_norm", NORM),
}
ENCODER = nested("layers.*", "layers.*", ENCODER_LAYER)
DECODER = nested("layers.*", "layers.*", DECODER_LAYER)
MODEL = {
    "source_embedding": "source_embedding.table",
    "target_embedding": "target_embedding.table",
    "generator": "generator",
    **nested("encoder", "encoder", ENCODER),
    **nested("decoder", "decoder", DECODER),
}


def _target_mask(tokens: Tensor, pad: int) -> Tensor:
    return model.padding_mask(tokens, pad) & model.causal_mask(tokens.size(1), tokens.device)


def _encoder_layer(sizes: Sizes) -> nn.Module:
    return model.EncoderLayer(sizes.d_model, sizes.heads, sizes.d_ff)


def _decoder_layer(sizes: Sizes) -> nn.Module:
    return model.DecoderLayer(sizes.d_model, sizes.heads, sizes.d_ff)


def _encoder(sizes: Sizes) -> nn.Module:
    return model.Encoder(sizes.d_model, sizes.heads, sizes.d_ff, sizes.layers)


def _decoder(sizes: Sizes) -> nn.Module:
    return model.Decoder(sizes.d_model, sizes.heads, sizes.d_ff, sizes.layers)


def _model(sizes: Sizes) -> nn.Module:
    return model.Transformer(
        sizes.source_vocabulary,
        sizes.target_vocabulary,
        d_model=sizes.d_model,
        heads=sizes.heads,
        d_ff=sizes.d_ff,
        layers=sizes.layers,
        source_pad=sizes.source_pad,
        target_pad=sizes.target_pad,
    )


backend = TorchBackend(
    name="newcomer",
    title="what this is, in one line",
    # Where it goes another way than the paper, on purpose: see `attentest list choices`.
    choices={
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-5,
        "fully_masked_row": "nan",
        "output": "logits",
        "tying": "none",
    },
    # What it does not claim to handle.
    limits=Limits(dropout=False),
    recipes={
        "padding_mask": Recipe(build=lambda sizes: model.padding_mask),
        "causal_mask": Recipe(build=lambda sizes: model.causal_mask),
        "target_mask": Recipe(build=lambda sizes: _target_mask),
        "attention": Recipe(build=lambda sizes: model.attention),
        "multi_head_attention": Recipe(
            build=lambda sizes: model.MultiHeadAttention(sizes.d_model, sizes.heads),
            parameters=PROJECTIONS,
        ),
        "positional_encoding": Recipe(build=lambda sizes: model.add_positions),
        "embedding": Recipe(
            build=lambda sizes: model.Embedding(sizes.source_vocabulary, sizes.d_model),
            parameters={"weight": "table.weight"},
        ),
        "layer_norm": Recipe(build=lambda sizes: nn.LayerNorm(sizes.d_model), parameters=NORM),
        "feed_forward": Recipe(
            build=lambda sizes: model.FeedForward(sizes.d_model, sizes.d_ff),
            parameters=FEED_FORWARD,
        ),
        "encoder_layer": Recipe(build=_encoder_layer, parameters=ENCODER_LAYER),
        "encoder": Recipe(build=_encoder, parameters=ENCODER),
        "decoder_layer": Recipe(build=_decoder_layer, parameters=DECODER_LAYER),
        "decoder": Recipe(build=_decoder, parameters=DECODER),
        "generator": Recipe(
            build=lambda sizes: nn.Linear(sizes.d_model, sizes.target_vocabulary),
            parameters={"weight": "weight", "bias": "bias"},
        ),
        "model": Recipe(
            build=_model,
            methods={
                "encode": lambda built, source: built.encode(source),
                "decode": lambda built, target, memory, source: built.decode(
                    target, memory, source
                ),
            },
            parameters=MODEL,
        ),
    },
)
