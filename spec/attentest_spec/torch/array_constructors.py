"""Arguments of constructors that random numbers are drawn from, in classes of arrays."""

import inspect
from typing import Any

import numpy as np

_SOURCES = {
    "numpy": ("rng", "generator", "random_state"),
    "jax": ("key", "rng", "rng_key", "prng_key", "rngs"),
}
"""Names of arguments from which random numbers are drawn."""


def sources_of_random_numbers(kind: type, library: str) -> dict[str, Any]:
    """Return the arguments that a constructor needs to draw random numbers, by their names."""
    seed = int(np.random.randint(2**31))  # the seed of a backend sets it
    return {name: _source(name, library, seed) for name in _names_of_sources(kind, library)}


def _source(name: str, library: str, seed: int) -> Any:
    if library == "numpy":
        made = np.random.RandomState if name == "random_state" else np.random.default_rng
        return made(seed)
    if name == "rngs":
        from flax import nnx

        return nnx.Rngs(seed)
    import jax

    return jax.random.PRNGKey(seed)


def without_sources(kind: type, library: str) -> inspect.Signature:
    """Return the signature of a class without the arguments that give it random numbers."""
    whole, left_out = _constructor(kind), _names_of_sources(kind, library)
    kept = [one for name, one in whole.parameters.items() if name not in left_out]
    if not left_out:
        return whole
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    by_name = [one.replace(kind=one.KEYWORD_ONLY) for one in kept if one.kind not in loose]
    return whole.replace(parameters=by_name)


def _names_of_sources(kind: type, library: str) -> list[str]:
    found = _constructor(kind).parameters.values()
    needed = (one.name for one in found if one.default is inspect.Parameter.empty)
    return [name for name in needed if name in _SOURCES[library]]


def _constructor(kind: Any) -> inspect.Signature:
    """Return the signature of a class, which is that of its `__init__`, whatever makes it."""
    own = inspect.signature(kind.__init__)
    _, *rest = own.parameters.values()
    return own.replace(parameters=rest)
