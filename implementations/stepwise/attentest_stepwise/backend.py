"""The backend of the step-by-step course: how its parts are built, called and named."""

from collections.abc import Iterable, Iterator
from functools import partial

import torch
from torch import Tensor, nn

from attentest_spec import Limits, Sizes, Unsupported, nested
from attentest_spec.torch import Recipe, Script, TorchBackend, cached_decoding
from attentest_stepwise import caching, decoding, model, optim, training

HEADS = {"query": "w_q", "key": "w_k", "value": "w_v", "output": "linear"}
NORM = {"gain": "weight", "bias": "bias"}
FEED_FORWARD = {"inner": "linear1", "outer": "linear2"}
ENCODER_LAYER = {
    **nested("self_attention", "attention", HEADS),
    **nested("self_attention_norm", "norm1", NORM),
    **nested("feed_forward", "ffn", FEED_FORWARD),
    **nested("feed_forward_norm", "norm2", NORM),
}
DECODER_LAYER = {
    **nested("self_attention", "self_attention", HEADS),
    **nested("self_attention_norm", "norm1", NORM),
    **nested("cross_attention", "enc_dec_attention", HEADS),
    **nested("cross_attention_norm", "norm2", NORM),
    **nested("feed_forward", "ffn", FEED_FORWARD),
    **nested("feed_forward_norm", "norm3", NORM),
}
ENCODER = nested("layers.*", "layers.*", ENCODER_LAYER)
DECODER = nested("layers.*", "layers.*", DECODER_LAYER)
MODEL = {
    "source_embedding": "encoder.emb.token.table",
    "target_embedding": "decoder.emb.token.table",
    "generator": "decoder.linear",
    **nested("encoder", "encoder", ENCODER),
    **nested("decoder", "decoder", DECODER),
}


def _encoder(sizes: Sizes) -> model.Encoder:
    """Return the layers alone: the contract's stack starts from an embedded input."""
    built = model.Encoder(
        sizes.source_vocabulary,
        sizes.max_length,
        sizes.d_model,
        sizes.d_ff,
        sizes.heads,
        sizes.layers,
        sizes.dropout,
    )
    del built.emb
    return built


def _whole_decoder(sizes: Sizes) -> model.Decoder:
    return model.Decoder(
        sizes.target_vocabulary,
        sizes.max_length,
        sizes.d_model,
        sizes.d_ff,
        sizes.heads,
        sizes.layers,
        sizes.dropout,
    )


def _decoder(sizes: Sizes) -> model.Decoder:
    """Return the layers alone: no embedding before them, no vocabulary after them."""
    built = _whole_decoder(sizes)
    del built.emb
    del built.linear
    return built


def _generator(sizes: Sizes) -> nn.Linear:
    """Return the linear layer that the decoder ends in."""
    return _whole_decoder(sizes.but(layers=1, heads=1)).linear


def _model(sizes: Sizes) -> model.Transformer:
    return model.Transformer(
        sizes.source_pad,
        sizes.target_pad,
        sizes.source_vocabulary,
        sizes.target_vocabulary,
        d_model=sizes.d_model,
        n_head=sizes.heads,
        max_len=sizes.max_length,
        hidden=sizes.d_ff,
        n_layers=sizes.layers,
        drop_prob=sizes.dropout,
    )


def _decode(built: model.Transformer, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
    return built.decode(target, memory, built.make_src_mask(source))


def _target_mask(tokens: Tensor, pad: int) -> Tensor:
    """Combine the two masks of the course as its whole model does."""
    no_peek = model.make_no_peek_mask(tokens.size(1), tokens.device)
    return model.make_pad_mask(tokens, pad) & no_peek


def _updates(
    sizes: Sizes, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Yield the parameters (N) after each update."""
    held = values.clone()
    adam = optim.Adam([held])
    for gradient, rate in zip(gradients, rates, strict=True):
        held.grad = gradient.clone()
        adam.step(float(rate))
        yield held.clone()


def _grouped(
    sizes: Sizes,
    values: Tensor,
    gradients: Tensor,
    rates: Tensor,
    groups: Tensor,
    kinds: Tensor,
    present: Tensor,
    saved: int,
) -> Tensor:
    """Return the parameters (T, N) of several arrays after each update."""
    if saved:
        raise Unsupported("its Adam has no state that can be saved")
    arrays = [one.clone() for one in torch.split(values, groups.tolist())]
    adam, found = optim.Adam(arrays), []
    for row, there, rate in zip(gradients, present, rates, strict=True):
        parts = zip(arrays, torch.split(row, groups.tolist()), there, strict=True)
        for array, part, kept in parts:
            array.grad = part.clone() if kept else None
        adam.step(float(rate))
        found.append(torch.cat(arrays).clone())
    return torch.stack(found)


def _clipped(sizes: Sizes, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Return the gradients (N,) of several parameters after clipping."""
    parameters = [one.clone() for one in torch.split(gradients, groups.tolist())]
    for one in parameters:
        one.grad = one.clone()
    optim.clip_gradients(iter(parameters), float(limit))
    return torch.cat([one.grad for one in parameters if one.grad is not None])


class Scripted(Script):
    """A scripted model with the methods that greedy decoding calls."""

    @property
    def trg_pad(self) -> int:
        """The pad id of the target."""
        return self.pad

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (B, 1) to the memory."""
        return self.memory(src)

    def decode(self, trg: Tensor, memory: Tensor, src_mask: Tensor | None) -> Tensor:
        """Map target tokens (B, T) and the memory to logits (B, T, V)."""
        return self.answer(trg, memory)

    def make_src_mask(self, src: Tensor) -> Tensor:
        """Return the source mask (B, 1, 1, 1)."""
        return model.make_pad_mask(src, self.source_pad)


def _greedy(script: Scripted, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    decoder = decoding.GreedyDecoder(script.play(scores), script.end, length)  # type: ignore[arg-type]  # of the same methods
    return script.filled(decoder.translate(script.source, script.unpadded(begin)), length)


def _step(
    built: model.Transformer, held: caching.CachedDecoder, tokens: Tensor
) -> tuple[Tensor, caching.CachedDecoder]:
    return held.step(tokens), held


def _reorder(
    built: model.Transformer, held: caching.CachedDecoder, rows: Tensor
) -> caching.CachedDecoder:
    held.reorder(rows)
    return held


backend = TorchBackend(
    name="stepwise",
    title="a step-by-step course: explicit classes, from the embedding to the whole model",
    choices={
        "update_count": "all",
        "norm_placement": "post",
        "final_norm": "none",
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-5,
        "norm_sharing": "separate",
        "embedding_scale": "none",
        "positional_encoding": "doubled-exponent",
        "head_width": "d/h",
        "mask_fill": -1e4,
        "fully_masked_row": "uniform",
        "activation": "relu",
        "projection_bias": "present",
        "output": "logits",
        "tying": "none",
        "initialisation": "torch-linear",
        "residual_initialisation": "none",
        "generator_initialisation": "torch-linear",
        "embedding_initialisation": "normal-1",
        "pad_row_initialisation": "random",
        "bias_initialisation": "torch-linear",
        "padding_side": "right",
        "sequence_marks": "start-and-end",
        "loss_input": "logits",
        "smoothed_mass": "other-words",
        "loss_normaliser": "tokens",
        "loss_measure": "cross-entropy",
        "loss_without_targets": "zero",
        "decoding_stop": "end-token",
        "after_end": "padding",
        "decoding_mode": "as-given",
        "cache_positions": "columns",
        "cache_update": "in-place",
        "cache_sessions": "independent",
    },
    limits=Limits(),
    recipes={
        "padding_mask": Recipe(build=lambda sizes: model.make_pad_mask),
        "causal_mask": Recipe(
            build=lambda sizes: model.make_no_peek_mask,
            call=lambda mask, length: mask(length)[None, None],
        ),
        "target_mask": Recipe(build=lambda sizes: _target_mask),
        "attention": Recipe(build=lambda sizes: model.ScaleDotProductAttention()),
        "multi_head_attention": Recipe(
            build=lambda sizes: model.MultiHeadAttention(sizes.d_model, sizes.heads),
            parameters=HEADS,
        ),
        "positional_encoding": Recipe(
            build=lambda sizes: model.PositionalEmbedding(sizes.d_model, sizes.max_length),
            call=lambda built, x: x + built(x.size(1)),
        ),
        "embedding": Recipe(
            build=lambda sizes: model.TokenEmbedding(sizes.source_vocabulary, sizes.d_model),
            parameters={"weight": "table.weight"},
        ),
        "layer_norm": Recipe(build=lambda sizes: nn.LayerNorm(sizes.d_model), parameters=NORM),
        "feed_forward": Recipe(
            build=lambda sizes: model.PositionwiseFeedForward(
                sizes.d_model, sizes.d_ff, sizes.dropout
            ),
            parameters=FEED_FORWARD,
        ),
        "encoder_layer": Recipe(
            build=lambda sizes: model.EncoderLayer(
                sizes.d_model, sizes.d_ff, sizes.heads, sizes.dropout
            ),
            parameters=ENCODER_LAYER,
        ),
        "encoder": Recipe(
            build=_encoder,
            call=lambda built, x, mask: built.run_layers(x, mask),
            parameters=ENCODER,
        ),
        "decoder_layer": Recipe(
            build=lambda sizes: model.DecoderLayer(
                sizes.d_model, sizes.d_ff, sizes.heads, sizes.dropout
            ),
            call=lambda built, x, memory, source_mask, target_mask: built(
                x, memory, target_mask, source_mask
            ),
            parameters=DECODER_LAYER,
        ),
        "decoder": Recipe(
            build=_decoder,
            call=lambda built, x, memory, source_mask, target_mask: built.run_layers(
                x, memory, target_mask, source_mask
            ),
            parameters=DECODER,
        ),
        "generator": Recipe(build=_generator, parameters={"weight": "weight", "bias": "bias"}),
        "model": Recipe(
            build=_model,
            methods={
                "encode": model.Transformer.encode,
                "decode": _decode,
                "greedy": lambda built, source, begin, length, end: decoding.GreedyDecoder(
                    built, end, length
                ).translate(source, begin),
            },
            parameters=MODEL,
        ),
        "batch": Recipe(
            build=lambda sizes: partial(
                training.teacher_forcing, src_pad=sizes.source_pad, trg_pad=sizes.target_pad
            ),
        ),
        "padded_batch": Recipe(
            build=lambda sizes: partial(
                training.pad_sentences, start=sizes.start, end=sizes.end, pad=sizes.target_pad
            ),
            call=lambda pad, tokens, lengths: pad(torch.split(tokens, lengths.tolist())),
        ),
        "loss": Recipe(
            build=lambda sizes: training.SmoothedCrossEntropy(
                sizes.target_vocabulary, sizes.target_pad, sizes.smoothing
            )
        ),
        "optimiser": Recipe(build=lambda sizes: sizes, call=_updates),
        "grouped_optimiser": Recipe(build=lambda sizes: sizes, call=_grouped),
        "gradient_clipping": Recipe(build=lambda sizes: sizes, call=_clipped),
        "learning_rate": Recipe(
            build=lambda sizes: (
                lambda step: optim.learning_rate(step, sizes.d_model, sizes.warmup, sizes.factor)
            ),
        ),
        "cached_decoding": cached_decoding(
            _model, start=caching.CachedDecoder, step=_step, reorder=_reorder, parameters=MODEL
        ),
        "greedy_decoding": Recipe(build=Scripted, call=_greedy),
    },
)
