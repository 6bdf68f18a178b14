"""The backend of x-transformers: how the library's parts are built and called."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from attentest_spec import Limits, Sizes, Unsupported
from attentest_spec.torch import Recipe, TorchBackend
from attentest_x_transformers import arguments, names
from attentest_x_transformers.library import attend
from attentest_x_transformers.library import x_transformers as library


def _of(kind: Callable[..., Any], **fixed: Any) -> Callable[[Sizes], Any]:
    return lambda sizes: kind(dim=sizes.d_model, **arguments.layers(sizes) | fixed)


def _model(sizes: Sizes) -> Any:
    both: dict[str, Any] = {}
    for side, tokens in (("enc", sizes.source_vocabulary), ("dec", sizes.target_vocabulary)):
        own = {"num_tokens": tokens, "max_seq_len": sizes.max_length, "emb_dropout": sizes.dropout}
        both |= {f"{side}_{name}": value for name, value in (arguments.layers(sizes) | own).items()}
    model = library.XTransformer(dim=sizes.d_model, tie_token_emb=True, **both)
    model.pad_ids = sizes.source_pad, sizes.target_pad
    return model


def _encode(model: Any, source: Tensor) -> Any:
    return model.encoder(source, mask=source != model.pad_ids[0], return_embeddings=True)


def _decode(model: Any, target: Tensor, memory: Tensor, source: Tensor) -> Any:
    """Return the logits; the library's own call returns a loss."""
    keep, read = target != model.pad_ids[1], source != model.pad_ids[0]
    return model.decoder.net(target, mask=keep, context=memory, context_mask=read)


def _masked(built: Any, x: Tensor, *rest: Tensor | None) -> Any:
    """Call a part that takes one sequence and, as its last input, a mask over it."""
    return built(x, attn_mask=rest[-1])


def _read(built: Any, x: Tensor, memory: Tensor, read: Tensor | None, mask: Tensor | None) -> Any:
    """Call a decoder with a mask in place of its own, which is always causal."""
    if read is not None and read.shape[1:3] != (1, 1):
        raise Unsupported("the library masks keys of the memory, equally for all queries and heads")
    keys = None if read is None else read[:, 0, 0].expand(len(x), -1)
    return built(x, context=memory, context_mask=keys, attn_mask=mask, causal=False)


def _attend(built: Any, *inputs: Tensor | None) -> tuple[Tensor, Tensor]:
    output, inner = built(*inputs)
    return output, inner.post_softmax_attn


backend = TorchBackend(
    name="x_transformers",
    title="x-transformers' XTransformer, norm first, and its parts",
    choices=names.CHOICES,
    limits=Limits(layers=names.LAYERS, cross=False),
    recipes={
        "causal_mask": Recipe(
            lambda sizes: attend.create_causal_mask, lambda hide, n: ~hide(n, n, "cpu")[None, None]
        ),
        "attention": Recipe(lambda sizes: attend.Attend(dropout=sizes.dropout), _attend),
        "multi_head_attention": Recipe(
            lambda sizes: library.Attention(
                sizes.d_model, heads=sizes.heads, **arguments.attention(sizes)
            ),
            _masked,
            parameters=names.HEADS,
        ),
        "positional_encoding": Recipe(
            lambda sizes: library.AbsolutePositionalEmbedding(sizes.d_model, sizes.max_length),
            lambda built, x: x + built(x),
            parameters=names.EMBEDDING,
        ),
        "embedding": Recipe(
            lambda sizes: library.TokenEmbedding(sizes.d_model, sizes.source_vocabulary),
            parameters=names.EMBEDDING,
        ),
        "layer_norm": Recipe(
            lambda sizes: library.LayerNorm(sizes.d_model, unit_offset=True),
            parameters=names.NORM,
        ),
        "feed_forward": Recipe(
            lambda sizes: library.FeedForward(sizes.d_model, **arguments.feed_forward(sizes)),
            parameters=names.FEED_FORWARD,
        ),
        "encoder_layer": Recipe(
            _of(library.TransformerBlock, depth=1), _masked, parameters=names.ENCODER_LAYER
        ),
        "encoder": Recipe(_of(library.Encoder), _masked, parameters=names.ENCODER),
        "decoder_layer": Recipe(
            _of(library.TransformerBlock, depth=1, cross_attend=True),
            _read,
            parameters=names.DECODER_LAYER,
        ),
        "decoder": Recipe(_of(library.Decoder, cross_attend=True), _read, parameters=names.DECODER),
        "generator": Recipe(
            lambda sizes: library.LinearNoBias(sizes.d_model, sizes.target_vocabulary),
            parameters={"weight": "weight"},
        ),
        "model": Recipe(
            _model,
            lambda model, source, target: _decode(model, target, _encode(model, source), source),
            {"encode": _encode, "decode": _decode},
            names.MODEL,
        ),
    },
)
