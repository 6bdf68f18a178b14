"""The oracles by the names of their components."""

from collections.abc import Callable, Mapping
from typing import Any

from attentest_spec.attention import attention
from attentest_spec.batch import batch, packed_batch, padded_batch
from attentest_spec.cache import cached_decoding
from attentest_spec.decoder import decoder, decoder_layer
from attentest_spec.decoding import beam_search, greedy_decoding, sampling
from attentest_spec.embedding import embedding
from attentest_spec.encoder import encoder, encoder_layer
from attentest_spec.feed_forward import feed_forward
from attentest_spec.generator import generator
from attentest_spec.language_model import (
    cached_language_model,
    causal_layer,
    language_model,
)
from attentest_spec.layer_norm import layer_norm
from attentest_spec.loss import loss
from attentest_spec.masks import causal_mask, padding_mask, target_mask
from attentest_spec.mixture_of_experts import mixture_of_experts
from attentest_spec.model import decode, encode, model
from attentest_spec.multi_head_attention import multi_head_attention
from attentest_spec.optimiser import gradient_clipping, grouped_optimiser, optimiser
from attentest_spec.positional_encoding import positional_encoding
from attentest_spec.residual import residual
from attentest_spec.rms_norm import rms_norm
from attentest_spec.rotary import rotary
from attentest_spec.schedule import learning_rate

Oracle = Callable[..., Any]
"""A function of a :class:`~attentest_spec.setting.Setting` and the component's inputs."""

ORACLES: Mapping[str, Oracle] = {
    "padding_mask": padding_mask,
    "causal_mask": causal_mask,
    "target_mask": target_mask,
    "attention": attention,
    "multi_head_attention": multi_head_attention,
    "positional_encoding": positional_encoding,
    "embedding": embedding,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "feed_forward": feed_forward,
    "mixture_of_experts": mixture_of_experts,
    "residual": residual,
    "encoder_layer": encoder_layer,
    "encoder": encoder,
    "decoder_layer": decoder_layer,
    "decoder": decoder,
    "generator": generator,
    "model": model,
    "batch": batch,
    "padded_batch": padded_batch,
    "packed_batch": packed_batch,
    "loss": loss,
    "learning_rate": learning_rate,
    "optimiser": optimiser,
    "grouped_optimiser": grouped_optimiser,
    "gradient_clipping": gradient_clipping,
    "cached_decoding": cached_decoding,
    "greedy_decoding": greedy_decoding,
    "beam_search": beam_search,
    "sampling": sampling,
    "rotary": rotary,
    "causal_layer": causal_layer,
    "language_model": language_model,
    "cached_language_model": cached_language_model,
}
"""The oracle of every component, called as ``ORACLES[name](given, *inputs)``."""

METHODS: Mapping[str, Oracle] = {"encode": encode, "decode": decode}
"""The oracles of the model's named methods: (given, source) and (given, target, memory, source)."""

__all__ = ["METHODS", "ORACLES", "Oracle"]
