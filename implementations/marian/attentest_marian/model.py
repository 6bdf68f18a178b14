"""The parts of transformers' Marian, called with masks that are true where a key is kept.

The attention kernel, "eager" or "sdpa", is set in the config of each part.
"""

from inspect import signature
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import MarianConfig
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.marian import modeling_marian as marian

EAGER = MarianConfig(attn_implementation="eager")
"""With this kernel the library writes every mask out, as numbers that are added to scores."""

_CACHE = {"cache", "past_key_values"} & signature(create_causal_mask).parameters.keys()
"""The argument for a cache: releases from 5.24 on warn of its older name."""


def attention(kernel: str) -> Any:
    """Return the function that the library's attention calls for `kernel`."""
    function = ALL_ATTENTION_FUNCTIONS.get_interface(kernel, marian.eager_attention_forward)
    caller = SimpleNamespace(training=False, is_causal=False)

    def attend(query: Tensor, key: Tensor, value: Tensor, keep: Tensor | None) -> Any:
        mask = library_mask(keep, query, kernel)
        output, weights = function(caller, query, key, value, mask)
        return output.transpose(1, 2), weights

    return attend


def library_mask(keep: Tensor | None, x: Tensor, kernel: str) -> Tensor | None:
    """Return a mask as the library makes it for `kernel`: boolean, or to be added to scores."""
    if keep is None or kernel == "sdpa":
        return keep
    return x.new_zeros(keep.shape).masked_fill(~keep, torch.finfo(x.dtype).min)


def keep_real(tokens: Tensor, pad: int) -> Any:
    """Return the library's padding mask of tokens (B, S) as (B, 1, 1, S), true = kept."""
    keys = tokens.new_zeros(*tokens.shape, 1, dtype=torch.float32)
    mask = create_bidirectional_mask(
        EAGER, keys[:, :1], tokens != pad, keys, allow_is_bidirectional_skip=False
    )
    return mask == 0


def keep_past(tokens: Tensor, pad: int) -> Any:
    """Return the library's causal padding mask of tokens (B, T) as (B, 1, T, T)."""
    rows = tokens.new_zeros(*tokens.shape, 1, dtype=torch.float32)
    mask = create_causal_mask(EAGER, rows, tokens != pad, **dict.fromkeys(_CACHE))
    return mask == 0


def keep_past_of_length(keep: Any, length: int) -> Any:
    """Return the library's causal mask of a length, made of tokens without padding."""
    return keep(torch.ones(1, length, dtype=torch.int64), 0)


def heads(config: MarianConfig) -> Any:
    """Build multi-head attention."""
    count, dropout = config.encoder_attention_heads, config.attention_dropout
    return marian.MarianAttention(config.d_model, count, dropout, config=config)


def attend(built: Any, query: Tensor, key: Tensor, value: Tensor, keep: Tensor | None) -> Any:
    """Call multi-head attention: it has one input for keys and values; a hook hands these over."""
    with built.v_proj.register_forward_pre_hook(lambda module, given: (value,)):
        return built(query, key, attention_mask=_mask(built, keep, query))[0]


def encode_layer(built: Any, x: Tensor, keep: Tensor | None) -> Any:
    """Call a layer of the encoder."""
    return built(x, _mask(built.self_attn, keep, x))


def decode_layer(
    built: Any, x: Tensor, memory: Tensor, keep_source: Tensor | None, keep: Tensor | None
) -> Any:
    """Call a layer of the decoder."""
    return built(x, **_decoding(built.self_attn, x, memory, keep_source, keep))


def stack(build: Any, config: MarianConfig) -> Any:
    """Build the encoder or the decoder without what it does before its layers.

    Embedded rows are given, scaled and with positions.
    """
    built = build(config)
    built.embed_tokens, built.embed_positions, built.embed_scale = None, Nothing(), 1.0
    return built


class Nothing(nn.Module):
    """Stands where positions would be made."""

    def forward(self, *shape: Any, **places: Any) -> float:
        """Return what is added."""
        return 0.0


def encode(built: Any, x: Tensor, keep: Tensor | None) -> Any:
    """Call the encoder."""
    return built(inputs_embeds=x, attention_mask=_mask(built, keep, x)).last_hidden_state


def decode(
    built: Any, x: Tensor, memory: Tensor, keep_source: Tensor | None, keep: Tensor | None
) -> Any:
    """Call the decoder."""
    masks = _decoding(built, x, memory, keep_source, keep)
    return built(inputs_embeds=x, **masks).last_hidden_state


def _decoding(
    built: Any, x: Tensor, memory: Tensor, keep_source: Tensor | None, keep: Tensor | None
) -> dict[str, Any]:
    """Return the arguments for two masks; without one of its own the library would be causal."""
    if keep is None:
        keep = x.new_ones(1, 1, x.size(1), x.size(1), dtype=torch.bool)
    return {
        "attention_mask": _mask(built, keep, x),
        "encoder_hidden_states": memory,
        "encoder_attention_mask": _mask(built, keep_source, x),
        "use_cache": False,
    }


def _mask(built: Any, keep: Tensor | None, x: Tensor) -> Tensor | None:
    return library_mask(keep, x, built.config._attn_implementation)


def positions(length: int, width: int) -> Any:
    """Build the table of positions, filled as in a new model."""
    table: Any = marian.MarianSinusoidalPositionalEmbedding(length, width)
    table.weight.data.copy_(table.create_weight())
    return table


def translator(config: MarianConfig, source_pad: int, target_pad: int) -> Any:
    """Build the whole model, with a pad id for each side; the library has one."""
    built: Any = marian.MarianMTModel(config)
    built.pad_ids = source_pad, target_pad
    return built


def translate(built: Any, source: Tensor, target: Tensor, **known: Any) -> Any:
    """Return the logits of the next token at every step of the target."""
    keep, keep_target = source != built.pad_ids[0], target != built.pad_ids[1]
    return built(source, keep, target, keep_target, use_cache=False, **known).logits


def read(built: Any, source: Tensor) -> Any:
    """Return the memory of the source."""
    return built.get_encoder()(source, source != built.pad_ids[0]).last_hidden_state


def finish(built: Any, target: Tensor, memory: Tensor, source: Tensor) -> Any:
    """Return the logits against a memory."""
    return translate(built, source, target, encoder_outputs=(memory,))
