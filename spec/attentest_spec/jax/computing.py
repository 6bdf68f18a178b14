"""Settings, compilation and random keys of JAX."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import count
from typing import Any

import jax

Key = Any
"""A key of `jax.random`; None in evaluation mode."""

_SETTINGS = (
    "jax_debug_nans",
    "jax_default_matmul_precision",
    "jax_default_prng_impl",
    "jax_disable_jit",
    "jax_enable_x64",
    "jax_numpy_dtype_promotion",
)

_FEWER_PASSES = {
    "xla_backend_optimization_level": 0,
    "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False,
}

_key_numbers = count()


def settings() -> dict[str, Any]:
    """Return the settings of JAX that change results."""
    return {name: getattr(jax.config, name) for name in _SETTINGS}


@cache
def compiler_options() -> dict[str, Any]:
    """Return the options for faster compilation that this version of XLA knows.

    Most programs here run once, and with all optimisations compiling a gradient takes a second.
    """
    return {name: value for name, value in _FEWER_PASSES.items() if _known(name, value)}


def _known(name: str, value: Any) -> bool:
    try:
        jax.jit(lambda: 0, compiler_options={name: value})()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def next_key() -> Key:
    """Return a key that was not used before: the n-th key of every process is the same."""
    return jax.random.fold_in(jax.random.key(0), next(_key_numbers))


def compile_program(function: Callable[..., Any], static: tuple[int, ...]) -> Callable[..., Any]:
    """Return `function` compiled, once for every value of its `static` arguments."""
    program: Callable[..., Any] = jax.jit(
        function, static_argnums=static, compiler_options=compiler_options()
    )
    return program


Evaluate = Callable[..., Any]
"""A function that is given a compiled program and its arguments, and returns the program's result.

The arguments behind the third are static.
"""

_evaluate: ContextVar[Evaluate] = ContextVar("evaluate")


@contextmanager
def evaluated_by(evaluate: Evaluate) -> Iterator[None]:
    """Let `evaluate` compute the calls of parts inside the block, instead of compiled code."""
    before = _evaluate.set(evaluate)
    try:
        yield
    finally:
        _evaluate.reset(before)


def compute(program: Callable[..., Any], *arguments: Any) -> Any:
    """Call a compiled program, or let the function of :func:`evaluated_by` evaluate it."""
    evaluate = _evaluate.get(None)
    return evaluate(program, *arguments) if evaluate else program(*arguments)


@cache
def initialiser() -> Callable[..., Any]:
    """Return the program that calls an `init`; equal calls are compiled once."""
    return compile_program(lambda init, built, key: init(built, key), static=(0, 1))
