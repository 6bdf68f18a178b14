"""The backends of transformers' Marian, one for each of its attention kernels."""

from functools import partial
from typing import Any

from transformers import MarianConfig
from transformers.models.marian import modeling_marian as marian

from attentest_marian import caching, generation, model, training
from attentest_spec import Limits, Sizes, Table, nested
from attentest_spec.torch import Recipe, TorchBackend

HEADS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
NORM = {"gain": "weight", "bias": "bias"}
ENCODER_LAYER = {
    **nested("self_attention", "self_attn", HEADS),
    **nested("self_attention_norm", "self_attn_layer_norm", NORM),
    **nested("feed_forward", "", {"inner": "fc1", "outer": "fc2"}),
    **nested("feed_forward_norm", "final_layer_norm", NORM),
}
DECODER_LAYER = {
    **ENCODER_LAYER,
    **nested("cross_attention", "encoder_attn", HEADS),
    **nested("cross_attention_norm", "encoder_attn_layer_norm", NORM),
}
ENCODER = nested("layers.*", "layers.*", ENCODER_LAYER)
DECODER = nested("layers.*", "layers.*", DECODER_LAYER)
MODEL = {
    "source_embedding": "model.encoder.embed_tokens",
    "target_embedding": "model.decoder.embed_tokens",
    "generator": "lm_head",
    **nested("encoder", "model.encoder", ENCODER),
    **nested("decoder", "model.decoder", DECODER),
}


def _config(kernel: str, sizes: Sizes) -> MarianConfig:
    """Return a config with the scaled embeddings and the activation of the released models.

    The library's one pad id has a row that is never trained; the contract has two, and none here.
    """
    counts = {"layers": sizes.layers, "attention_heads": sizes.heads, "ffn_dim": sizes.d_ff}
    named: dict[str, Any] = {
        "attn_implementation": kernel,
        **{f"{side}_{name}": counts[name] for side in ("encoder", "decoder") for name in counts},
        **{f"{place}dropout": sizes.dropout for place in ("", "attention_", "activation_")},
    }
    return MarianConfig(
        vocab_size=sizes.source_vocabulary,
        decoder_vocab_size=sizes.target_vocabulary,
        d_model=sizes.d_model,
        max_position_embeddings=sizes.max_length,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=None,
        **named,
    )


def _recipes(kernel: str) -> dict[str, Recipe]:
    def recipe(make: Any, call: Any, table: Table) -> Recipe:
        return Recipe(lambda sizes: make(_config(kernel, sizes)), call, parameters=table)

    def build(sizes: Sizes) -> Any:
        return model.translator(_config(kernel, sizes), sizes.source_pad, sizes.target_pad)

    encoder, decoder = (
        partial(model.stack, one) for one in (marian.MarianEncoder, marian.MarianDecoder)
    )
    return {
        "padding_mask": Recipe(lambda sizes: model.keep_real),
        "causal_mask": Recipe(lambda sizes: model.keep_past, model.keep_past_of_length),
        "target_mask": Recipe(lambda sizes: model.keep_past),
        "attention": Recipe(lambda sizes: model.attention(kernel)),
        "multi_head_attention": recipe(model.heads, model.attend, HEADS),
        "positional_encoding": Recipe(
            lambda sizes: model.positions(sizes.max_length, sizes.d_model),
            lambda table, x: x + table(x.shape),
        ),
        "encoder_layer": recipe(marian.MarianEncoderLayer, model.encode_layer, ENCODER_LAYER),
        "encoder": recipe(encoder, model.encode, ENCODER),
        "decoder_layer": recipe(marian.MarianDecoderLayer, model.decode_layer, DECODER_LAYER),
        "decoder": recipe(decoder, model.decode, DECODER),
        "model": Recipe(
            build, model.translate, {"encode": model.read, "decode": model.finish}, MODEL
        ),
        "cached_decoding": caching.recipe(build, MODEL),
        **training.RECIPES,
        **generation.RECIPES,
    }


def _backend(name: str, kernel: str, empty_row: str) -> TorchBackend:
    """Return the library with one of its kernels; they differ in rows that keep no key."""
    return TorchBackend(
        name=name,
        title=f"Hugging Face transformers' Marian, with its attention kernel {kernel}",
        choices={
            "norm_epsilon_place": "inside-root",
            "norm_variance": "biased",
            "norm_epsilon": 1e-5,
            "positional_encoding": "halves",
            "position_arithmetic": "float32",
            "fully_masked_row": empty_row,
            "activation": "silu",
            "projection_bias": "present",
            "output": "logits",
            "generator_bias": "none",
            "cache_update": "in-place",
            **training.CHOICES,
            **generation.CHOICES,
        },
        limits=Limits(single=("loss", "beam_search")),
        recipes=_recipes(kernel),
    )


eager = _backend("marian", "eager", "uniform")
sdpa = _backend("marian_sdpa", "sdpa", "zero")
