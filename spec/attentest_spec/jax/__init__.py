"""JAX functions and modules as backends of the contract."""

from attentest_spec.jax.backend import JaxBackend, JaxPart, Recipe
from attentest_spec.jax.computing import Key, evaluated_by

__all__ = ["JaxBackend", "JaxPart", "Key", "Recipe", "evaluated_by"]
