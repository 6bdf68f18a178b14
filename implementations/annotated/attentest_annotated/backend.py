"""The backend of the annotated style: how its parts are built, called and named."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest_annotated import caching, decoding, model, training
from attentest_spec import Limits, Sizes, nested
from attentest_spec.torch import Recipe, Script, TorchBackend, cached_decoding

HEADS = {
    "query": "linears.0",
    "key": "linears.1",
    "value": "linears.2",
    "output": "linears.3",
}
NORM = {"gain": "a_2", "bias": "b_2"}
FEED_FORWARD = {"inner": "w_1", "outer": "w_2"}
GENERATOR = {"weight": "proj.weight", "bias": "proj.bias"}
ENCODER_LAYER = {
    **nested("self_attention", "self_attn", HEADS),
    **nested("self_attention_norm", "sublayer.0.norm", NORM),
    **nested("feed_forward", "feed_forward", FEED_FORWARD),
    **nested("feed_forward_norm", "sublayer.1.norm", NORM),
}
DECODER_LAYER = {
    **nested("self_attention", "self_attn", HEADS),
    **nested("self_attention_norm", "sublayer.0.norm", NORM),
    **nested("cross_attention", "src_attn", HEADS),
    **nested("cross_attention_norm", "sublayer.1.norm", NORM),
    **nested("feed_forward", "feed_forward", FEED_FORWARD),
    **nested("feed_forward_norm", "sublayer.2.norm", NORM),
}
ENCODER = {**nested("layers.*", "layers.*", ENCODER_LAYER), **nested("norm", "norm", NORM)}
DECODER = {**nested("layers.*", "layers.*", DECODER_LAYER), **nested("norm", "norm", NORM)}
MODEL = {
    "source_embedding": "src_embed.0.lut",
    "target_embedding": "tgt_embed.0.lut",
    **nested("encoder", "encoder", ENCODER),
    **nested("decoder", "decoder", DECODER),
    **nested("generator", "generator", GENERATOR),
}


class TokensInLogProbabilitiesOut(model.EncoderDecoder):
    """The model with masks made from tokens, and with the generator called.

    It is a subclass and not a wrapper, so that checkpoints of the two have the same names.
    """

    def __init__(self, sizes: Sizes) -> None:
        made = model.make_model(
            sizes.source_vocabulary,
            sizes.target_vocabulary,
            n=sizes.layers,
            d_model=sizes.d_model,
            d_ff=sizes.d_ff,
            h=sizes.heads,
            dropout=sizes.dropout,
            max_len=sizes.max_length,
        )
        super().__init__(made.encoder, made.decoder, made.src_embed, made.tgt_embed, made.generator)
        self.source_pad = sizes.source_pad
        self.target_pad = sizes.target_pad

    def memory(self, source: Tensor) -> Tensor:
        """Map source tokens (B, S) to the memory (B, S, D)."""
        return self.encode(source, model.make_src_mask(source, self.source_pad))

    def scores(self, target: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """Map target tokens (B, T) and the memory to log-probabilities (B, T, V)."""
        states = self.decode(
            memory,
            model.make_src_mask(source, self.source_pad),
            target,
            model.make_std_mask(target, self.target_pad),
        )
        scores: Tensor = self.generator(states)
        return scores

    def translate(self, source: Tensor, target: Tensor) -> Tensor:
        """Map tokens (B, S) and (B, T) to log-probabilities (B, T, V)."""
        states = self(
            source,
            target,
            model.make_src_mask(source, self.source_pad),
            model.make_std_mask(target, self.target_pad),
        )
        scores: Tensor = self.generator(states)
        return scores

    def greedy(self, source: Tensor, begin: Tensor, length: int, end: int) -> Tensor:
        """Continue start symbols (B, 1), all the same, to (B, length); nothing stops at an end."""
        mask = model.make_src_mask(source, self.source_pad)
        return decoding.greedy_decode(self, source, mask, length, int(begin[0, 0]))


class Scripted(Script):
    """A scripted model with the methods that greedy decoding calls."""

    def encode(self, src: Tensor, src_mask: Tensor) -> Tensor:
        """Map source tokens (B, 1) to the memory."""
        return self.memory(src)

    def decode(self, memory: Tensor, src_mask: Tensor, tgt: Tensor, tgt_mask: Tensor) -> Tensor:
        """Map memory and target tokens (B, T) to scores (B, T, V)."""
        return self.answer(tgt, memory)

    def generator(self, x: Tensor) -> Tensor:
        """Return the scores, which are log-probabilities already."""
        return x


def _greedy(script: Scripted, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    """Decode one sentence after the other: a call has one start symbol."""
    starts = script.unpadded(begin, most=1)[:, 0].tolist()
    src = script.play(scores).source
    mask = model.make_src_mask(src, script.source_pad)
    return torch.cat(
        [
            decoding.greedy_decode(script, src[n : n + 1], mask[n : n + 1], length, start)  # type: ignore[arg-type]  # of the same methods
            for n, start in enumerate(starts)
        ]
    )


def _heads(sizes: Sizes) -> model.MultiHeadedAttention:
    return model.MultiHeadedAttention(sizes.heads, sizes.d_model, sizes.dropout)


def _feed_forward(sizes: Sizes) -> model.PositionwiseFeedForward:
    return model.PositionwiseFeedForward(sizes.d_model, sizes.d_ff, sizes.dropout)


def _encoder_layer(sizes: Sizes) -> model.EncoderLayer:
    return model.EncoderLayer(sizes.d_model, _heads(sizes), _feed_forward(sizes), sizes.dropout)


def _decoder_layer(sizes: Sizes) -> model.DecoderLayer:
    return model.DecoderLayer(
        sizes.d_model, _heads(sizes), _heads(sizes), _feed_forward(sizes), sizes.dropout
    )


def _headless(mask: Tensor | None) -> Tensor | None:
    """Return a mask (B, 1, Q, K) as (B, Q, K): the model adds the head axis itself."""
    return None if mask is None else mask.squeeze(1)


def _batch(make: Callable[..., training.Batch], source: Tensor, target: Tensor) -> Any:
    made = make(source, target)
    masks = made.src_mask.unsqueeze(1), made.trg_mask.unsqueeze(1)
    return made.trg, made.trg_y, *masks, torch.tensor(made.ntokens)


def _updates(
    make: Any, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Yield the parameters (N) after each update by the optimizer that `make` returns."""
    held = nn.Parameter(values.clone())
    optimizer = make([held])
    for gradient, rate in zip(gradients, rates, strict=True):
        held.grad = gradient.clone()
        optimizer.param_groups[0]["lr"] = float(rate)
        optimizer.step()
        yield held.detach().clone()


backend = TorchBackend(
    name="annotated",
    title="the Annotated Transformer's style: clones, and layers that close over their sublayers",
    choices={
        "norm_placement": "pre",
        "final_norm": "present",
        "norm_epsilon_place": "added-to-deviation",
        "norm_variance": "unbiased",
        "norm_epsilon": 1e-6,
        "norm_sharing": "separate",
        "embedding_scale": "sqrt-d",
        "positional_encoding": "interleaved",
        "head_width": "d/h",
        "mask_fill": -1e9,
        "fully_masked_row": "uniform",
        "activation": "relu",
        "projection_bias": "present",
        "output": "log-probabilities",
        "tying": "none",
        "initialisation": "xavier-uniform",
        "initialisation_packing": "separate",
        "residual_initialisation": "none",
        "generator_initialisation": "as-matrices",
        "embedding_initialisation": "as-matrices",
        "pad_row_initialisation": "random",
        "bias_initialisation": "torch-linear",
        "padding_side": "right",
        "sequence_marks": "start-and-end",
        "loss_input": "log-probabilities",
        "smoothed_mass": "other-real-words",
        "loss_normaliser": "none",
        "loss_measure": "divergence",
        "loss_without_targets": "zero",
        "decoding_stop": "length",
        "decoding_mode": "as-given",
        "cache_positions": "columns",
        "cache_update": "functional",
        "cache_sessions": "independent",
    },
    # The fill of -1e9 cannot be written into float16, and one mask serves all heads.
    limits=Limits(
        precisions=("float64", "float32", "bfloat16"),
        masks=("none", "padding", "causal", "per-sample"),
    ),
    recipes={
        "padding_mask": Recipe(
            build=lambda sizes: model.make_src_mask,
            call=lambda mask, tokens, pad: mask(tokens, pad).unsqueeze(1),
        ),
        "causal_mask": Recipe(
            build=lambda sizes: model.subsequent_mask,
            call=lambda mask, length: mask(length).unsqueeze(1),
        ),
        "target_mask": Recipe(
            build=lambda sizes: model.make_std_mask,
            call=lambda mask, tokens, pad: mask(tokens, pad).unsqueeze(1),
        ),
        "attention": Recipe(build=lambda sizes: model.attention),
        "multi_head_attention": Recipe(
            build=_heads,
            call=lambda built, query, key, value, mask: built(query, key, value, _headless(mask)),
            parameters=HEADS,
        ),
        "positional_encoding": Recipe(
            build=lambda sizes: model.PositionalEncoding(
                sizes.d_model, sizes.dropout, sizes.max_length
            ),
        ),
        "embedding": Recipe(
            build=lambda sizes: model.Embeddings(sizes.d_model, sizes.source_vocabulary),
            parameters={"weight": "lut.weight"},
        ),
        "layer_norm": Recipe(build=lambda sizes: model.LayerNorm(sizes.d_model), parameters=NORM),
        "feed_forward": Recipe(build=_feed_forward, parameters=FEED_FORWARD),
        "residual": Recipe(
            build=lambda sizes: model.SublayerConnection(sizes.d_model, sizes.dropout),
            call=lambda built, x, matrix: built(x, lambda inner: inner @ matrix),
            parameters=nested("norm", "norm", NORM),
        ),
        "encoder_layer": Recipe(
            build=_encoder_layer,
            call=lambda built, x, mask: built(x, _headless(mask)),
            parameters=ENCODER_LAYER,
        ),
        "encoder": Recipe(
            build=lambda sizes: model.Encoder(_encoder_layer(sizes), sizes.layers),
            call=lambda built, x, mask: built(x, _headless(mask)),
            parameters=ENCODER,
        ),
        "decoder_layer": Recipe(
            build=_decoder_layer,
            call=lambda built, x, memory, source_mask, target_mask: built(
                x, memory, _headless(source_mask), _headless(target_mask)
            ),
            parameters=DECODER_LAYER,
        ),
        "decoder": Recipe(
            build=lambda sizes: model.Decoder(_decoder_layer(sizes), sizes.layers),
            call=lambda built, x, memory, source_mask, target_mask: built(
                x, memory, _headless(source_mask), _headless(target_mask)
            ),
            parameters=DECODER,
        ),
        "generator": Recipe(
            build=lambda sizes: model.Generator(sizes.d_model, sizes.target_vocabulary),
            parameters=GENERATOR,
        ),
        "model": Recipe(
            build=TokensInLogProbabilitiesOut,
            call=TokensInLogProbabilitiesOut.translate,
            methods={
                "encode": TokensInLogProbabilitiesOut.memory,
                "decode": TokensInLogProbabilitiesOut.scores,
                "greedy": TokensInLogProbabilitiesOut.greedy,
            },
            parameters=MODEL,
        ),
        "batch": Recipe(
            build=lambda sizes: partial(
                training.Batch, pad=sizes.target_pad, src_pad=sizes.source_pad
            ),
            call=_batch,
        ),
        "padded_batch": Recipe(
            build=lambda sizes: partial(
                training.collate_batch, bos=sizes.start, eos=sizes.end, pad=sizes.target_pad
            ),
            call=lambda collate, tokens, lengths: collate(torch.split(tokens, lengths.tolist())),
        ),
        "loss": Recipe(
            build=lambda sizes: training.LabelSmoothing(
                sizes.target_vocabulary, sizes.target_pad, sizes.smoothing
            ),
            call=lambda built, output, target: built(output.flatten(0, 1), target.flatten()),
        ),
        "optimiser": Recipe(build=lambda sizes: training.make_optimizer, call=_updates),
        "learning_rate": Recipe(
            build=lambda sizes: (
                lambda step: training.rate(step, sizes.d_model, sizes.factor, sizes.warmup)
            ),
        ),
        "cached_decoding": cached_decoding(
            TokensInLogProbabilitiesOut,
            start=lambda built, source: caching.start(
                built, source, model.make_src_mask(source, built.source_pad)
            ),
            step=lambda built, cache, tokens: caching.step(built, cache, tokens, built.target_pad),
            reorder=lambda built, cache, rows: caching.reorder(cache, rows),
            parameters=MODEL,
        ),
        "greedy_decoding": Recipe(build=Scripted, call=_greedy),
    },
)
