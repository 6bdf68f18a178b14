"""JAX functions and modules as backends of the contract."""

from attentest_spec.jax.backend import JaxBackend, JaxPart, Recipe
from attentest_spec.jax.computing import Key

__all__ = ["JaxBackend", "JaxPart", "Key", "Recipe"]
