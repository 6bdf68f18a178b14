"""Sinusoidal positions in JAX."""

import jax.numpy as jnp

from attentest_spec.jax import JaxBackend, Recipe


def add_positions(x):
    length, width = x.shape[1:]
    place = jnp.arange(length, dtype=x.dtype)[:, None]
    even = jnp.arange(0, width, 2, dtype=x.dtype)
    angles = place / 10000.0 ** (even / width)
    table = jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1)
    return x + table.reshape(length, -1)[:, :width]


encoding = JaxBackend(
    name="positions",
    title="positions in JAX",
    recipes={"positional_encoding": Recipe(build=lambda sizes, dtype: add_positions)},
)
