"""Classes of Flax, whose objects hold no parameters, as classes of torch modules."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, update_wrapper
from typing import Any

import numpy as np
import torch
from torch import nn

from attentest_spec.torch.array_parts import register
from attentest_spec.torch.array_reads import TRAINING
from attentest_spec.torch.arrays import on_arrays

Path = tuple[str, ...]
"""The names by which a parameter is reached from a module."""

_PENDING = "parameters_of_the_first_call"
"""The name of what is there before the first call makes the parameters."""

_PARAMETERS = "params"
_OWN = ("parent", "name")
"""Fields that every class has, and that are no settings."""

_EVALUATING = ("deterministic", "is_eval", "eval_mode")
"""Names of the argument of a call that says whether it is none of training."""


@cache
def module_on_variables(kind: Any, *, rounded: bool = False) -> type[nn.Module]:
    """Return the class `kind`, a `flax.linen.Module`, as one of torch modules.

    Its objects are lazy: `init` makes the parameters for the inputs of the first call, and `apply`
    takes them in every call. Other variables stay as they were made. An argument of the call that
    says whether it is one of training is the mode of the module, and dropout draws from torch's
    generator. See :func:`on_arrays` for tensors and `rounded`.
    """

    class OnVariables(nn.Module):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__()
            self._held = kind(*args, **named)
            self._paths: list[Path] | None = None
            self._others: dict[str, Any] = {}
            self._seed = int(np.random.randint(2**31))  # the seed of a backend sets it
            setattr(self, _PENDING, nn.UninitializedParameter())

        def forward(self, *args: Any, **named: Any) -> Any:
            named = {**_modes(kind, training=self.training), **named}
            if self._paths is None:
                self._make(args, named)
            paths = self._paths or []
            values = [self.get_parameter(".".join(path)) for path in paths]
            seeds = {"dropout": int(torch.randint(2**31, ()))} if self.training else {}

            def compute(values: list[Any], args: Any, named: Any) -> Any:
                variables = {**self._others, _PARAMETERS: nested(paths, values)}
                return compiled("apply", self._held, seeds, (variables, *args), named)

            return on_arrays(compute, "jax", rounded=rounded)(values, args, named)

        def _make(self, args: Any, named: Any) -> None:
            """Make the parameters for the inputs of a call."""
            seeds = {_PARAMETERS: self._seed, "dropout": self._seed + 1}

            def made(args: Any, named: Any) -> Any:
                found = compiled("init", self._held, seeds, args, named)
                self._others = {name: one for name, one in found.items() if name != _PARAMETERS}
                return dict(flat(found.get(_PARAMETERS, {})))

            with torch.no_grad():
                found = on_arrays(made, "jax")(args, named)
            del self._parameters[_PENDING]
            for path, value in found.items():
                register(self, path, nn.Parameter(value.clone()))
            self._paths = list(found)

        def __reduce__(self) -> Any:
            return _made_again, (kind, rounded), dict(vars(self))

    made: Any = update_wrapper(OnVariables, kind, updated=())
    made.__signature__ = _constructor(kind)
    made.forward.__signature__ = _call(kind)
    made.forward.__doc__ = kind.__call__.__doc__
    made.written_as = f"module_on_variables({{}}, rounded={rounded})"
    found: type[nn.Module] = made
    return found


def compiled(
    method: str, module: Any, seeds: Mapping[str, int], args: Sequence[Any], named: Any
) -> Any:
    """Return what `init` or `apply` of a module computes, as one program for inputs of a kind.

    Modules with equal fields share it. What fails there is computed step by step: fields without a
    hash, code that looks at the values of its inputs, and refusals, whose errors are those.
    """
    import jax

    keys = {name: jax.random.PRNGKey(seed) for name, seed in seeds.items()}
    leaves, structure = jax.tree.flatten((list(args), dict(named)))
    arrays = [one for one in leaves if isinstance(one, jax.Array)]
    fixed = tuple(None if isinstance(one, jax.Array) else one for one in leaves)
    try:
        return _program()(method, module, structure, fixed, keys, arrays)
    except Exception:  # code that a user wrote may raise anything
        return _step_by_step(method, module, structure, fixed, keys, arrays)


@cache
def _program() -> Callable[..., Any]:
    import jax

    program: Callable[..., Any] = jax.jit(_step_by_step, static_argnums=(0, 1, 2, 3))
    return program


def _step_by_step(
    method: str,
    module: Any,
    structure: Any,
    fixed: Sequence[Any],
    keys: Mapping[str, Any],
    arrays: Sequence[Any],
) -> Any:
    import jax

    given = iter(arrays)
    leaves = [next(given) if one is None else one for one in fixed]
    args, named = jax.tree.unflatten(structure, leaves)
    if method == "init":
        return module.init(keys, *args, **named)
    return module.apply(*args, rngs=keys, **named)


def _made_again(kind: Any, rounded: bool) -> nn.Module:
    made: Any = module_on_variables(kind, rounded=rounded)
    again: nn.Module = nn.Module.__new__(made)
    return again


def flat(tree: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every array of a nested dictionary with the names that lead to it."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, (*path, name))
        else:
            yield (*path, name), value


def nested(paths: Sequence[Path], values: Sequence[Any]) -> dict[str, Any]:
    """Return the nested dictionary of the values at their paths."""
    tree: dict[str, Any] = {}
    for path, value in zip(paths, values, strict=True):
        *within, last = path
        branch = tree
        for name in within:
            branch = branch.setdefault(name, {})
        branch[last] = value
    return tree


def _modes(kind: Any, *, training: bool) -> dict[str, bool]:
    """Return the argument of a call that says whether it is one of training, {} for none."""
    return {own: training != (own in _EVALUATING) for own in _names_of_modes(kind)[:1]}


def _names_of_modes(kind: Any) -> list[str]:
    return [own for own in inspect.signature(kind.__call__).parameters if _is_mode(own)]


def _is_mode(own: str) -> bool:
    return own in TRAINING or own in _EVALUATING


def _constructor(kind: Any) -> inspect.Signature:
    whole = inspect.signature(kind)
    own = [one for name, one in whole.parameters.items() if name not in _OWN]
    return whole.replace(parameters=own)


def _call(kind: Any) -> inspect.Signature:
    whole = inspect.signature(kind.__call__)
    own = [one for name, one in whole.parameters.items() if not _is_mode(name)]
    return whole.replace(parameters=own)


def is_of_variables(kind: Any) -> bool:
    """Return whether `kind` is a class of Flax whose objects hold no parameters."""
    bases = kind.__mro__[1:] if inspect.isclass(kind) else ()
    return any(one.__module__.startswith("flax.linen.") for one in bases)
