"""The backend of the one-page Transformer: how its parts are built, called and named."""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest_scratch import cache, model, optim, training
from attentest_spec import Limits, Sizes, nested
from attentest_spec.torch import Recipe, Script, TorchBackend, cached_decoding

HEADS = {"query": "W_q", "key": "W_k", "value": "W_v", "output": "W_o"}
NORM = {"gain": "weight", "bias": "bias"}
FEED_FORWARD = {"inner": "fc1", "outer": "fc2"}
ENCODER_LAYER = {
    **nested("self_attention", "attention", HEADS),
    **nested("self_attention_norm", "norm", NORM),
    **nested("feed_forward", "ffn", FEED_FORWARD),
    **nested("feed_forward_norm", "norm", NORM),
}
DECODER_LAYER = {
    **nested("self_attention", "masked_attention", HEADS),
    **nested("self_attention_norm", "norm", NORM),
    **nested("cross_attention", "cross_attention", HEADS),
    **nested("cross_attention_norm", "norm", NORM),
    **nested("feed_forward", "ffn", FEED_FORWARD),
    **nested("feed_forward_norm", "norm", NORM),
}
# A stack of one layer is the layer: its names have no number.
ENCODER = nested("layers.*", "", ENCODER_LAYER)
DECODER = nested("layers.*", "", DECODER_LAYER)
MODEL = {
    "source_embedding": "src_embedding",
    "target_embedding": "tgt_embedding",
    "generator": "output",
    **nested("encoder", "encoder", ENCODER),
    **nested("decoder", "decoder", DECODER),
}


def _hiding(mask: Tensor | None) -> Tensor | None:
    """Return a boolean mask (true = may be attended) as numbers to add to the scores."""
    if mask is None:
        return None
    return torch.zeros(mask.shape, device=mask.device).masked_fill(~mask, -math.inf)


def _one_layer(sizes: Sizes) -> None:
    if sizes.layers != 1:
        raise ValueError(
            f"layers is {sizes.layers}; this model has one layer on each side, so give 1"
        )


def _encoder_layer(sizes: Sizes) -> model.Encoder:
    return model.Encoder(sizes.d_model, sizes.heads, sizes.d_ff)


def _encoder(sizes: Sizes) -> model.Encoder:
    _one_layer(sizes)
    return _encoder_layer(sizes)


def _decoder_layer(sizes: Sizes) -> model.Decoder:
    return model.Decoder(sizes.d_model, sizes.heads, sizes.d_ff)


def _decoder(sizes: Sizes) -> model.Decoder:
    _one_layer(sizes)
    return _decoder_layer(sizes)


def _decode(
    built: model.Decoder,
    x: Tensor,
    memory: Tensor,
    source_mask: Tensor | None,
    target_mask: Tensor | None,
) -> Tensor:
    states: Tensor = built(x, memory, _hiding(target_mask), _hiding(source_mask))
    return states


def _model(sizes: Sizes) -> model.Transformer:
    _one_layer(sizes)
    return model.Transformer(
        sizes.source_vocabulary,
        sizes.target_vocabulary,
        d_model=sizes.d_model,
        heads=sizes.heads,
        hidden=sizes.d_ff,
        src_pad=sizes.source_pad,
        tgt_pad=sizes.target_pad,
    )


def _embedding(sizes: Sizes) -> nn.Embedding:
    """Return the source table of a whole model, the one place where it is built."""
    return _model(sizes.but(layers=1, heads=1, d_ff=1)).src_embedding


def _generator(sizes: Sizes) -> nn.Linear:
    return _model(sizes.but(layers=1, heads=1, d_ff=1)).output


def _written(
    built: model.Transformer, source: Tensor, begin: Tensor, length: int, end: int
) -> Tensor:
    """Write on one sentence after the other; padding fills the shorter ones."""
    pairs = zip(source[:, None], begin.tolist(), strict=True)
    rows = [model.write_on(built, one, written, end, length) for one, written in pairs]
    return nn.utils.rnn.pad_sequence(
        [torch.tensor(row, device=source.device) for row in rows],
        batch_first=True,
        padding_value=built.tgt_pad,
    )


def _target_mask(tokens: Tensor, pad: int) -> Tensor:
    hidden = model.padding_mask(tokens, pad) + model.causal_mask(tokens.size(1), tokens.device)
    return hidden == 0


def _batch(sizes: Sizes, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    read, said, count = training.shifted(target, sizes.target_pad)
    kept = model.padding_mask(source, sizes.source_pad) == 0
    return read, said, kept, _target_mask(read, sizes.target_pad), count


def _packed(pack: Callable[..., Any], tokens: Tensor, lengths: Tensor) -> tuple[Tensor, ...]:
    read, said, places, mask = pack(torch.split(tokens, lengths.tolist()))
    return read[None], said[None], places[None], (mask == 0)[None, None]


def _updates(
    sizes: Sizes, value: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Yield the parameters (N) after each update."""
    state = None
    for gradient, rate in zip(gradients, rates, strict=True):
        value, state = optim.adam_update(value, gradient, state, float(rate))
        yield value


class Scripted(Script):
    """A scripted model with the methods that writing on calls."""

    def encode(self, src: Tensor) -> Tensor:
        """Map source tokens (1, 1) to the memory."""
        return self.memory(src)

    def decode(self, tgt: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        """Map target tokens (1, T) and the memory to logits (1, T, V)."""
        return self.answer(tgt, memory)


def _greedy(script: Scripted, scores: Tensor, begin: Tensor, length: int) -> Tensor:
    """Decode one sentence after the other."""
    sources = script.play(scores).source[:, None]
    given = script.unpadded(begin).tolist()
    rows = [
        model.write_on(script, source, tokens, script.end, length)  # type: ignore[arg-type]  # of the same methods
        for source, tokens in zip(sources, given, strict=True)
    ]
    return torch.cat([script.filled(begin.new_tensor([row]), length) for row in rows])


backend = TorchBackend(
    name="scratch",
    title="one page from scratch: one layer, heads as wide as the model, one shared norm",
    choices={
        "norm_placement": "post",
        "final_norm": "none",
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-5,
        "norm_sharing": "shared",
        "embedding_scale": "none",
        "positional_encoding": "doubled-exponent",
        "head_width": "d",
        "mask_fill": "exact",
        "fully_masked_row": "nan",
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
        "loss_input": "logits",
        "loss_normaliser": "sentences",
        "loss_measure": "cross-entropy",
        "loss_without_targets": "zero",
        "schedule": "constant",
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "decoding_stop": "end-token",
        "after_end": "padding",
        "decoding_mode": "as-given",
        "cache_positions": "columns",
        "cache_update": "functional",
        "cache_sessions": "independent",
    },
    limits=Limits(layers=1, dropout=False, smoothing=0.0),
    recipes={
        "padding_mask": Recipe(
            build=lambda sizes: model.padding_mask,
            call=lambda mask, tokens, pad: mask(tokens, pad) == 0,
        ),
        "causal_mask": Recipe(
            build=lambda sizes: model.causal_mask,
            call=lambda mask, length: (mask(length) == 0)[None, None],
        ),
        "target_mask": Recipe(build=lambda sizes: _target_mask),
        "attention": Recipe(
            build=lambda sizes: model.attention,
            call=lambda attend, query, key, value, mask: attend(query, key, value, _hiding(mask)),
        ),
        "multi_head_attention": Recipe(
            build=lambda sizes: model.MultiHeadAttention(sizes.d_model, sizes.heads),
            call=lambda built, query, key, value, mask: built(query, key, value, _hiding(mask)),
            parameters=HEADS,
        ),
        "positional_encoding": Recipe(build=lambda sizes: model.add_positions),
        "embedding": Recipe(
            build=_embedding,
            call=lambda built, tokens: model.embed(tokens, built),
            parameters={"weight": "weight"},
        ),
        "layer_norm": Recipe(build=lambda sizes: nn.LayerNorm(sizes.d_model), parameters=NORM),
        "feed_forward": Recipe(
            build=lambda sizes: model.FeedForward(sizes.d_model, sizes.d_ff),
            parameters=FEED_FORWARD,
        ),
        "encoder_layer": Recipe(
            build=_encoder_layer,
            call=lambda built, x, mask: built(x, _hiding(mask)),
            parameters=ENCODER_LAYER,
        ),
        "encoder": Recipe(
            build=_encoder,
            call=lambda built, x, mask: built(x, _hiding(mask)),
            parameters=ENCODER,
        ),
        "decoder_layer": Recipe(build=_decoder_layer, call=_decode, parameters=DECODER_LAYER),
        "decoder": Recipe(build=_decoder, call=_decode, parameters=DECODER),
        "generator": Recipe(build=_generator, parameters={"weight": "weight", "bias": "bias"}),
        "model": Recipe(
            build=_model,
            methods={
                "encode": model.Transformer.encode,
                "decode": model.Transformer.decode,
                "greedy": _written,
            },
            parameters=MODEL,
        ),
        "batch": Recipe(build=lambda sizes: sizes, call=_batch),
        "packed_batch": Recipe(build=lambda sizes: training.packed, call=_packed),
        "loss": Recipe(
            build=lambda sizes: partial(training.sequence_loss, pad=sizes.target_pad),
        ),
        "optimiser": Recipe(build=lambda sizes: sizes, call=_updates),
        "learning_rate": Recipe(
            build=lambda sizes: lambda step: optim.rate_at(step, sizes.factor, sizes.warmup),
        ),
        "cached_decoding": cached_decoding(
            _model,
            start=cache.start,
            step=cache.step,
            reorder=lambda built, held, rows: cache.reorder(held, rows),
            parameters=MODEL,
        ),
        "greedy_decoding": Recipe(build=Scripted, call=_greedy),
    },
)
