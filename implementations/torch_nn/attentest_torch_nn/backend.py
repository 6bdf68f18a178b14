"""The backend of torch.nn: how the library's parts are built, called and named."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest_spec import Limits, Place, Sizes, Table, nested
from attentest_spec.torch import Recipe, Script, TorchBackend, cached_decoding
from attentest_torch_nn import caching, decoding, model, training, updating

# The library packs the three input projections into one matrix of three blocks of rows.
HEADS: Table = {
    "query.weight": Place("in_proj_weight", part=(0, 3)),
    "key.weight": Place("in_proj_weight", part=(1, 3)),
    "value.weight": Place("in_proj_weight", part=(2, 3)),
    "query.bias": Place("in_proj_bias", part=(0, 3)),
    "key.bias": Place("in_proj_bias", part=(1, 3)),
    "value.bias": Place("in_proj_bias", part=(2, 3)),
    "output": "out_proj",
}
NORM = {"gain": "weight", "bias": "bias"}
FEED_FORWARD = {"inner": "linear1", "outer": "linear2"}
ENCODER_LAYER = {
    **nested("self_attention", "self_attn", HEADS),
    **nested("self_attention_norm", "norm1", NORM),
    **nested("feed_forward", "", FEED_FORWARD),
    **nested("feed_forward_norm", "norm2", NORM),
}
DECODER_LAYER = {
    **nested("self_attention", "self_attn", HEADS),
    **nested("self_attention_norm", "norm1", NORM),
    **nested("cross_attention", "multihead_attn", HEADS),
    **nested("cross_attention_norm", "norm2", NORM),
    **nested("feed_forward", "", FEED_FORWARD),
    **nested("feed_forward_norm", "norm3", NORM),
}
ENCODER = {**nested("layers.*", "layers.*", ENCODER_LAYER), **nested("norm", "norm", NORM)}
DECODER = {**nested("layers.*", "layers.*", DECODER_LAYER), **nested("norm", "norm", NORM)}
MODEL = {
    "source_embedding": "source_embedding.lookup",
    "target_embedding": "target_embedding.lookup",
    "generator": "generator",
    **nested("encoder", "transformer.encoder", ENCODER),
    **nested("decoder", "transformer.decoder", DECODER),
}


def _checked(sizes: Sizes) -> None:
    """Refuse impossible sizes with their numbers; the library asserts, or fails late."""
    model.check_heads(sizes.d_model, sizes.heads)
    model.check_sizes(layers=sizes.layers, d_ff=sizes.d_ff)
    model.check_dropout(sizes.dropout)


def _heads(sizes: Sizes) -> nn.MultiheadAttention:
    _checked(sizes)
    return nn.MultiheadAttention(sizes.d_model, sizes.heads, sizes.dropout, batch_first=True)


def _encoder_layer(sizes: Sizes) -> nn.TransformerEncoderLayer:
    _checked(sizes)
    return nn.TransformerEncoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, sizes.dropout, batch_first=True
    )


def _decoder_layer(sizes: Sizes) -> nn.TransformerDecoderLayer:
    _checked(sizes)
    return nn.TransformerDecoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, sizes.dropout, batch_first=True
    )


def _model(sizes: Sizes) -> model.Transformer:
    return model.Transformer(
        sizes.source_vocabulary,
        sizes.target_vocabulary,
        d_model=sizes.d_model,
        heads=sizes.heads,
        layers=sizes.layers,
        d_ff=sizes.d_ff,
        dropout=sizes.dropout,
        src_pad=sizes.source_pad,
        tgt_pad=sizes.target_pad,
    )


def _layer_norm(sizes: Sizes) -> nn.LayerNorm:
    model.check_sizes(d_model=sizes.d_model)
    return nn.LayerNorm(sizes.d_model)


def _loss(sizes: Sizes) -> nn.CrossEntropyLoss:
    model.check_smoothing(sizes.smoothing)
    return nn.CrossEntropyLoss(ignore_index=sizes.target_pad, label_smoothing=sizes.smoothing)


def _hidden(mask: Tensor | None, batch: int, heads: int, queries: int) -> Tensor | None:
    """Return a mask (true = may be attended) as the library wants it: (B * H, Q, K), true = hidden.

    The library lays heads next to each other within a sample, and so does a reshape of (B, H).
    """
    if mask is None:
        return None
    return (~mask).expand(batch, heads, queries, mask.size(-1)).flatten(0, 1)


def _masks(mask: Tensor | None, x: Tensor, heads: int) -> tuple[Tensor | None, Tensor | None]:
    """Return the library's pair of masks: one for keys alone (B, K), or one over queries too."""
    if mask is not None and mask.shape[1:3] == (1, 1) and mask.size(0) == x.size(0):
        return None, ~mask[:, 0, 0]
    return _hidden(mask, x.size(0), heads, x.size(1)), None


def _attend(
    built: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> Tensor:
    over, keys = _masks(mask, query, built.num_heads)
    output: Tensor = built(
        query, key, value, key_padding_mask=keys, attn_mask=over, need_weights=False
    )[0]
    return output


def _encode(
    built: nn.TransformerEncoder | nn.TransformerEncoderLayer, x: Tensor, mask: Tensor | None
) -> Tensor:
    first = built.layers[0] if isinstance(built, nn.TransformerEncoder) else built
    over, keys = _masks(mask, x, first.self_attn.num_heads)
    if isinstance(built, nn.TransformerEncoder):
        return built(x, mask=over, src_key_padding_mask=keys)  # type: ignore[no-any-return]
    return built(x, src_mask=over, src_key_padding_mask=keys)  # type: ignore[no-any-return]


def _decode(
    built: nn.TransformerDecoder | nn.TransformerDecoderLayer,
    x: Tensor,
    memory: Tensor,
    source_mask: Tensor | None,
    target_mask: Tensor | None,
) -> Tensor:
    first = built.layers[0] if isinstance(built, nn.TransformerDecoder) else built
    heads = first.self_attn.num_heads
    over, keys = _masks(target_mask, x, heads)
    memory_over, memory_keys = _masks(source_mask, x, heads)
    states: Tensor = built(
        x,
        memory,
        tgt_mask=over,
        memory_mask=memory_over,
        tgt_key_padding_mask=keys,
        memory_key_padding_mask=memory_keys,
    )
    return states


def _finish(built: model.Transformer, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return built.decode(target, memory, model.hide_padding(source, built.src_pad))


def _target_mask(tokens: Tensor, pad: int) -> Tensor:
    hidden = model.hide_padding(tokens, pad)[:, None, None, :]
    return ~(hidden | model.hide_future(tokens.size(1), tokens.device))


def _scaled_dot_product(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, None]:
    """Call the library's function, where true = kept; it returns no weights."""
    return nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask), None


def _batch(split: Callable[..., Any], source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    read, wanted, hidden_source, hidden = split(source, target)
    count = (wanted != split.keywords["tgt_pad"]).sum()  # type: ignore[attr-defined]  # a partial
    return read, wanted, ~hidden_source[:, None, None, :], ~hidden[:, None], count


def _collate(sizes: Sizes) -> Callable[..., tuple[Tensor, Tensor]]:
    return partial(training.collate, bos=sizes.start, eos=sizes.end, pad=sizes.target_pad)


def _padded(collate: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    padded, hidden = collate(torch.split(tokens, lengths.tolist()))
    return padded, ~hidden


class Scripted(Script):
    """A scripted model with the attributes and methods that the searches use."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes)
        self.src_pad, self.tgt_pad, self.alpha = sizes.source_pad, sizes.target_pad, sizes.alpha

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (B, 1) to the memory."""
        return self.memory(src)

    def decode(self, tgt: Tensor, memory: Tensor, hide_memory: Tensor | None = None) -> Tensor:
        """Map target tokens (B, T) and the memory to logits (B, T, V)."""
        return self.answer(tgt, memory)


def _greedy(script: Scripted, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    source, given = script.play(scores).source, script.unpadded(begin)
    return decoding.greedy_search(script, source, given, script.end, length)  # type: ignore[arg-type]  # of the same methods


def _beams(
    script: Scripted, scores: Tensor, begin: Tensor, length: int, beams: int
) -> tuple[Tensor, Tensor]:
    source, given = script.play(scores).source, script.unpadded(begin)
    return decoding.beam_search(script, source, given, script.end, length, beams, script.alpha)  # type: ignore[arg-type]  # of the same methods


def _sampling(sizes: Sizes) -> Callable[[Tensor], Tensor]:
    return lambda logits: decoding.next_token_probabilities(
        logits, sizes.temperature, sizes.top_k, sizes.top_p
    )


def _step(
    built: model.Transformer, cache: caching.KeyValueCache, tokens: Tensor
) -> tuple[Tensor, caching.KeyValueCache]:
    return caching.step(built, cache, tokens), cache


def _reorder(
    built: model.Transformer, cache: caching.KeyValueCache, rows: Tensor
) -> caching.KeyValueCache:
    cache.reorder(rows)
    return cache


backend = TorchBackend(
    name="torch_nn",
    title="torch.nn.Transformer, with the parts that the library leaves out",
    choices={
        "norm_placement": "post",
        "final_norm": "present",
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-5,
        "norm_sharing": "separate",
        "embedding_scale": "sqrt-d",
        "positional_encoding": "interleaved",
        "head_width": "d/h",
        "mask_fill": "exact",
        "fully_masked_row": "unspecified",
        "activation": "relu",
        "projection_bias": "present",
        "output": "logits",
        "tying": "none",
        "initialisation": "xavier-uniform",
        "initialisation_packing": "packed",
        "residual_initialisation": "none",
        "generator_initialisation": "torch-linear",
        "embedding_initialisation": "normal-inverse-sqrt-d",
        "pad_row_initialisation": "random",
        "padding_side": "right",
        "sequence_marks": "start-and-end",
        "loss_input": "logits",
        "smoothed_mass": "all-words",
        "loss_normaliser": "tokens",
        "loss_measure": "cross-entropy",
        "loss_without_targets": "nan",
        "update_count": "own",
        "clip_epsilon": 1e-6,
        "decoding_stop": "end-token",
        "after_end": "padding",
        "decoding_mode": "evaluation",
        "cache_positions": "columns",
        "cache_update": "in-place",
        "cache_sessions": "independent",
        "length_penalty": "wu",
        "counted_length": "new",
        "finished_beams": "in-beam",
        "filter_order": "temperature-first",
        "nucleus": "of-what-is-left",
    },
    limits=Limits(),
    recipes={
        "padding_mask": Recipe(
            build=lambda sizes: model.hide_padding,
            call=lambda hide, tokens, pad: ~hide(tokens, pad)[:, None, None, :],
        ),
        "causal_mask": Recipe(
            build=lambda sizes: model.hide_future,
            call=lambda hide, length: ~hide(length)[None, None],
        ),
        "target_mask": Recipe(build=lambda sizes: _target_mask),
        "attention": Recipe(build=lambda sizes: _scaled_dot_product),
        "multi_head_attention": Recipe(build=_heads, call=_attend, parameters=HEADS),
        "positional_encoding": Recipe(build=lambda sizes: model.PositionalEncoding(sizes.dropout)),
        "embedding": Recipe(
            build=lambda sizes: model.TokenEmbedding(sizes.source_vocabulary, sizes.d_model),
            parameters={"weight": "lookup.weight"},
        ),
        "layer_norm": Recipe(build=_layer_norm, parameters=NORM),
        "encoder_layer": Recipe(build=_encoder_layer, call=_encode, parameters=ENCODER_LAYER),
        "encoder": Recipe(
            build=lambda sizes: nn.TransformerEncoder(
                _encoder_layer(sizes),
                sizes.layers,
                nn.LayerNorm(sizes.d_model),
                enable_nested_tensor=False,
            ),
            call=_encode,
            parameters=ENCODER,
        ),
        "decoder_layer": Recipe(build=_decoder_layer, call=_decode, parameters=DECODER_LAYER),
        "decoder": Recipe(
            build=lambda sizes: nn.TransformerDecoder(
                _decoder_layer(sizes), sizes.layers, nn.LayerNorm(sizes.d_model)
            ),
            call=_decode,
            parameters=DECODER,
        ),
        "generator": Recipe(
            build=lambda sizes: nn.Linear(sizes.d_model, sizes.target_vocabulary),
            parameters={"weight": "weight", "bias": "bias"},
        ),
        "model": Recipe(
            build=_model,
            methods={
                "encode": model.Transformer.encode,
                "decode": _finish,
                "greedy": lambda built, source, begin, length, end: decoding.greedy_search(
                    built, source, begin, end, length
                ),
            },
            parameters=MODEL,
        ),
        "batch": Recipe(
            build=lambda sizes: partial(
                training.split_batch, src_pad=sizes.source_pad, tgt_pad=sizes.target_pad
            ),
            call=_batch,
        ),
        "padded_batch": Recipe(build=_collate, call=_padded),
        "loss": Recipe(
            build=_loss,
            call=lambda built, output, target: built(output.transpose(1, 2), target),
        ),
        "learning_rate": Recipe(build=lambda sizes: sizes, call=updating.rate),
        "optimiser": Recipe(build=lambda sizes: sizes, call=updating.updates),
        "grouped_optimiser": Recipe(build=lambda sizes: sizes, call=updating.grouped),
        "gradient_clipping": Recipe(build=lambda sizes: sizes, call=updating.clipped),
        "cached_decoding": cached_decoding(
            _model, start=caching.KeyValueCache, step=_step, reorder=_reorder, parameters=MODEL
        ),
        "greedy_decoding": Recipe(build=Scripted, call=_greedy),
        "beam_search": Recipe(build=Scripted, call=_beams),
        "sampling": Recipe(build=_sampling),
    },
)
