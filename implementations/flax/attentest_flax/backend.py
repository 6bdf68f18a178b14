"""The backend of flax linen: its own modules, and the names of their parameters."""

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn

from attentest_flax import training
from attentest_spec import Place, Sizes, Table
from attentest_spec.jax import JaxBackend, Key, Recipe

# Kernels are stored input first, then by head: (D, H, E), and (H, E, D) on the way out.
HEADS: Table = {
    "query.weight": Place("query.kernel", layout="d h e -> (h e) d"),
    "query.bias": Place("query.bias", layout="h e -> (h e)"),
    "key.weight": Place("key.kernel", layout="d h e -> (h e) d"),
    "key.bias": Place("key.bias", layout="h e -> (h e)"),
    "value.weight": Place("value.kernel", layout="d h e -> (h e) d"),
    "value.bias": Place("value.bias", layout="h e -> (h e)"),
    "output.weight": Place("out.kernel", layout="h e d -> d (h e)"),
    "output.bias": "out.bias",
}
Built = tuple[nn.Module, jax.ShapeDtypeStruct]  # and what inputs it is initialised with


def _heads(sizes: Sizes, dtype: Any) -> Built:
    module = nn.MultiHeadDotProductAttention(
        num_heads=sizes.heads,
        qkv_features=sizes.d_model,
        dropout_rate=sizes.dropout,
        dtype=dtype,
        param_dtype=dtype,
    )
    return module, jax.ShapeDtypeStruct((1, 1, sizes.d_model), dtype)


def _norm(sizes: Sizes, dtype: Any) -> Built:
    shape = jax.ShapeDtypeStruct((1, sizes.d_model), dtype)
    return nn.LayerNorm(dtype=dtype, param_dtype=dtype), shape


def _embedding(sizes: Sizes, dtype: Any) -> Built:
    module = nn.Embed(sizes.source_vocabulary, sizes.d_model, dtype=dtype, param_dtype=dtype)
    return module, jax.ShapeDtypeStruct((1, 1), jnp.int32)


def _init(built: Built, key: Key) -> Any:
    module, example = built
    quiet = {"deterministic": True} if hasattr(module, "deterministic") else {}
    return module.init(key, jnp.zeros(example.shape, example.dtype), **quiet)["params"]


def _call(built: Built, parameters: Any, key: Key, x: jax.Array) -> Any:
    return built[0].apply({"params": parameters}, x)


def _attend(built: Built, parameters: Any, key: Key, *given: Any) -> Any:
    *inputs, mask = given
    dropped = {} if key is None else {"rngs": {"dropout": key}}
    return built[0].apply(
        {"params": parameters}, *inputs, mask=mask, deterministic=key is None, **dropped
    )


def _dot_product(
    query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None
) -> tuple[Any, None]:
    """Call linen's function, which has heads after positions and returns no weights."""
    turned = [one.swapaxes(1, 2) for one in (query, key, value)]
    return nn.dot_product_attention(*turned, mask=mask).swapaxes(1, 2), None


def _padding_mask(tokens: jax.Array, pad: int) -> Any:
    return nn.make_attention_mask(jnp.ones((len(tokens), 1)), tokens != pad, dtype=bool)


def _causal_mask(length: int) -> Any:
    return nn.make_causal_mask(jnp.ones((1, length)), dtype=bool)


def _target_mask(tokens: jax.Array, pad: int) -> Any:
    causal = nn.make_causal_mask(tokens, dtype=bool)
    return nn.combine_masks(_padding_mask(tokens, pad), causal, dtype=bool)


backend = JaxBackend(
    name="flax",
    title="flax linen's attention, layer norm, embedding and masks, and optax, in JAX",
    choices={
        "norm_epsilon_place": "inside-root",
        "norm_variance": "biased",
        "norm_epsilon": 1e-6,
        "embedding_scale": "none",
        "head_width": "d/h",
        "mask_fill": "exact",
        "fully_masked_row": "uniform",
        "projection_bias": "present",
        **training.CHOICES,
    },
    recipes={
        "padding_mask": Recipe(lambda sizes, dtype: _padding_mask),
        "causal_mask": Recipe(lambda sizes, dtype: _causal_mask),
        "target_mask": Recipe(lambda sizes, dtype: _target_mask),
        "attention": Recipe(lambda sizes, dtype: _dot_product),
        "multi_head_attention": Recipe(_heads, _init, _attend, parameters=HEADS),
        "embedding": Recipe(_embedding, _init, _call, parameters={"weight": "embedding"}),
        "layer_norm": Recipe(_norm, _init, _call, parameters={"gain": "scale", "bias": "bias"}),
        **training.RECIPES,
    },
)
