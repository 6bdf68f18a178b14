"""Classes that hold and compute with arrays of NumPy or JAX, as classes of torch modules."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache, update_wrapper, wraps
from typing import Any

import numpy as np
from torch import nn

from attentest_spec.names import require
from attentest_spec.torch.array_constructors import sources_of_random_numbers, without_sources
from attentest_spec.torch.array_parts import called_as_modules, called_method, parts_of, register
from attentest_spec.torch.array_places import (
    ArrayPlace,
    array_of,
    array_places,
    items_of,
    objects_in,
    parameter_places,
    put_all,
    tables_of,
    without_backward,
)
from attentest_spec.torch.array_reads import TRAINING
from attentest_spec.torch.arrays import LIBRARIES, on_arrays
from attentest_spec.torch.values import to_tensor


@cache
def module_on_arrays(
    kind: type, library: str = "numpy", *, rounded: bool = False
) -> type[nn.Module]:
    """Return the class `kind`, whose objects compute with arrays of a `library`, as one of modules.

    Its parameters are the arrays of real numbers that an object holds, itself or in objects, lists,
    tuples and dictionaries that it holds, and that the code of a call reads. Gradients and moments,
    which other methods use, are none, and neither are tables, which are the same however random
    numbers are drawn. Before a call, the object gets the values of the parameters. `__call__` is
    called, or `forward` where there is none; see :func:`on_arrays` for tensors and `rounded`.
    Arguments without a default that random numbers are drawn from, such as `rng` and `key`, are
    given, and an argument `training` of a call is the mode of the module.
    Raises :class:`~attentest_spec.names.UnknownName` for other libraries, and Unsupported in the
    constructor for an object whose arrays are read in a way that is not seen.
    """
    require("library", library, LIBRARIES)
    called = called_method(kind)

    class OnArrays(nn.Module):
        @wraps(kind.__init__)  # type: ignore[misc]  # the constructor of a class that is known
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__()

            def make() -> Any:
                return kind(*args, **{**sources_of_random_numbers(kind, library), **named})

            self._held = make()
            tables = tables_of(self._held, called, make)
            places = parameter_places(self._held, called, tables)
            self._paths = {one.path for one in places}  # a call may leave other arrays behind
            known: dict[int, nn.Parameter] = {}
            for one in places:
                value = nn.Parameter(to_tensor(np.array(one.array)))
                register(self, one.path, known.setdefault(id(one.array), value))

        def _places(self) -> list[ArrayPlace]:
            return [one for one in array_places(self._held, called) if one.path in self._paths]

        def forward(self, *args: Any, **named: Any) -> Any:
            places = self._places()
            values = [self.get_parameter(".".join(one.path)) for one in places]
            named = {**_modes(called, self.training), **named}

            def compute(values: list[Any], args: Any, named: Any) -> Any:
                parts = parts_of(self, self._held) if library == "numpy" else []
                before = [one.array for one in places]
                try:
                    put_all(places, values)
                    with called_as_modules(parts) if parts else nullcontext():
                        return array_of(called(self._held, *args, **named))
                finally:  # JAX computes gradients with what exists during the call alone
                    put_all(places, before)

            return on_arrays(compute, library, rounded=rounded)(values, args, named)

        def train(self, mode: bool = True) -> "OnArrays":
            """Set the mode, of the objects that have one as well."""
            super().train(mode)
            for one in objects_in(self._held):
                if isinstance(dict(items_of(one)).get("training"), bool):
                    object.__setattr__(one, "training", mode)
            return self

        def __reduce__(self) -> Any:
            kept = {**vars(self), "_held": without_backward(self._held)}
            return _made_again, (kind, library, rounded), kept

    update_wrapper(OnArrays.forward, called)
    made: Any = update_wrapper(OnArrays, kind, updated=())
    made.__signature__ = without_sources(kind, library)
    # For those who write code that calls it.
    made.written_as = f"module_on_arrays({{}}, {library!r}, rounded={rounded})"
    found: type[nn.Module] = made
    return found


def _made_again(kind: type, library: str, rounded: bool) -> nn.Module:
    made: Any = module_on_arrays(kind, library, rounded=rounded)
    again: nn.Module = nn.Module.__new__(made)
    return again


def _modes(called: Callable[..., Any], training: bool) -> dict[str, bool]:
    """Return the argument of a call that says whether it is one of training, {} for none."""
    found = inspect.signature(called).parameters
    own = [name for name in TRAINING if name in found and isinstance(found[name].default, bool)]
    return dict.fromkeys(own[:1], training)
