"""How JAX computes here: which settings are watched, how programs are compiled, random keys."""

from collections.abc import Callable
from functools import cache
from itertools import count
from typing import Any

import jax

Key = Any
"""A key of `jax.random`; in evaluation mode there is None."""

_SETTINGS = (
    "jax_debug_nans",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_disable_jit",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
)

_QUICK = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}

_numbers = count()


def settings() -> dict[str, Any]:
    """Return the settings of JAX that decide what is computed."""
    return {name: getattr(jax.config, name) for name in _SETTINGS}


@cache
def quick() -> dict[str, Any]:
    """Return the options, of those that this XLA knows, that make compiling take less time.

    Most programs here are run once: with all optimisations, compiling a gradient takes a second.
    """
    return {name: value for name, value in _QUICK.items() if _known(name, value)}


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value})()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def fresh_key() -> Key:
    """Return a key that was not used before, the same one in the same place of another process."""
    return jax.random.fold_in(jax.random.key(0), next(_numbers))


def compiled(function: Callable[..., Any], static: tuple[int, ...]) -> Callable[..., Any]:
    """Return `function` compiled, anew for every value of its `static` arguments."""
    program: Callable[..., Any] = jax.jit(function, static_argnums=static, compiler_options=quick())
    return program


@cache
def initialised() -> Callable[..., Any]:
    """Return the program that calls an `init`: what is equal is compiled once."""
    return compiled(lambda init, built, key: init(built, key), static=(0, 1))
