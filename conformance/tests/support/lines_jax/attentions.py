"""Scaled dot-product attention as JAX functions, each in another style."""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from attentest_spec.jax import JaxBackend, Recipe


def einsum_attention(query, key, value, mask):
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key)
    scores = scores / jnp.sqrt(query.shape[-1])
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, value)


@jax.jit
def stable_softmax(logits):
    powers = jnp.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def biased_attention(q, k, v, keep):
    """Attention with the mask added to the scores, and a compiled softmax."""
    depth = q.shape[-1]
    logits = jnp.matmul(q * depth**-0.5, k.swapaxes(-1, -2))
    if keep is not None:
        bias = jnp.where(keep, 0.0, -1e30)
        logits = logits + bias
    shares = stable_softmax(logits)
    return jnp.matmul(shares, v)


def one_head(query, key, value, hidden):
    """Attention of one head: (Q, E), (K, E), (K, V) and a mask of what is hidden."""
    energy = jnp.dot(query, key.T)
    energy = energy * lax.rsqrt(float(key.shape[-1]))
    energy = jnp.where(hidden, -1e30, energy)
    share = jax.nn.softmax(energy)
    return jnp.dot(share, value)


def mapped_attention(query, key, value, mask):
    """One head, mapped over heads and samples."""
    shape = (*query.shape[:3], key.shape[2])
    hidden = jnp.zeros(shape, bool) if mask is None else jnp.broadcast_to(~mask, shape)
    return jax.vmap(jax.vmap(one_head))(query, key, value, hidden)


def streamed_attention(query, key, value, mask):
    """Attention that reads one key after the other, and keeps a running maximum."""
    scaled = query / query.shape[-1] ** 0.5
    shape = (*query.shape[:3], key.shape[2])
    keep = jnp.ones(shape, bool) if mask is None else jnp.broadcast_to(mask, shape)

    def read(state, one):
        total, weight, highest = state
        column, row, seen = one
        score = jnp.einsum("bhqe,bhe->bhq", scaled, column)
        score = jnp.where(seen, score, -1e30)
        new = jnp.maximum(highest, score)
        factor, power = jnp.exp(highest - new), jnp.exp(score - new)
        total = total * factor[..., None] + power[..., None] * row[:, :, None]
        return (total, weight * factor + power, new), None

    start = jnp.zeros((*shape[:3], value.shape[-1]), query.dtype)
    none = jnp.zeros(shape[:3], query.dtype), jnp.full(shape[:3], -1e30, query.dtype)
    pieces = (jnp.moveaxis(key, 2, 0), jnp.moveaxis(value, 2, 0), jnp.moveaxis(keep, 3, 0))
    (total, weight, _), _ = lax.scan(read, (start, *none), pieces)
    return total / weight[..., None]


def backend(function):
    return JaxBackend(
        name=function.__name__,
        title="attention in JAX",
        recipes={"attention": Recipe(build=partial(_build, function))},
    )


def _build(function, sizes, dtype):
    return function


einsum, biased = backend(einsum_attention), backend(biased_attention)
mapped, streamed = backend(mapped_attention), backend(streamed_attention)
