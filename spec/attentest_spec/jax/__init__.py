"""JAX functions and modules as backends of the contract."""

from attentest_spec.jax.backend import JaxBackend, JaxPart, Recipe
from attentest_spec.jax.cached import cached_decoding
from attentest_spec.jax.computing import Key, evaluated_by

__all__ = ["JaxBackend", "JaxPart", "Key", "Recipe", "cached_decoding", "evaluated_by"]
