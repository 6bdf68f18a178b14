"""The setting of an oracle: sizes, choices and parameters; and the types of arrays."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt

from attentest_spec.choices import PAPER, Choices
from attentest_spec.sizes import Sizes

# The shape of an array is written into a signature as Annotated[Floats, "B H Q E"], in the notation
# of jaxtyping: *rows is any number of dimensions, and #K is K or 1. The names are those of the
# whole project: B batch, S source, T target, L either of them, H heads, D model width, E head
# width, F inner width, V vocabulary, Q queries, K keys, G value width. Only tests check them.
Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Tokens = npt.NDArray[np.int64]
P = ParamSpec("P")
T = TypeVar("T")

Observe = Callable[[str, tuple[Any, ...], Any], None]
"""A function of the canonical name of a part, its inputs and its output."""


@dataclass(frozen=True)
class Setting:
    """The sizes, the choices and the canonical parameters of one component.

    `parameters` maps canonical names, relative to the component, to float64 arrays. `path` is the
    canonical name of the current part, "" for the component itself; `observe` is called with the
    inputs and the output of every part inside.
    """

    sizes: Sizes = field(default_factory=Sizes)
    choices: Choices = PAPER
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    path: str = ""
    observe: Observe | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Floats:
        """Return the parameter `name`, in its canonical shape."""
        return self.parameters[name]

    def get(self, name: str) -> Floats | None:
        """Return the parameter `name` in its canonical shape; None for a bias left out."""
        return self.parameters.get(name)

    def under(self, prefix: str) -> "Setting":
        """Return the setting of the part named `prefix`: its parameters, without the prefix."""
        start = prefix + "."
        cut = len(start)
        inner = {
            name[cut:]: array for name, array in self.parameters.items() if name.startswith(start)
        }
        path = f"{self.path}.{prefix}" if self.path else prefix
        # Not `replace`, which is slower: every part of every oracle comes this way.
        return Setting(self.sizes, self.choices, inner, path, self.observe)

    def report(self, inputs: tuple[Any, ...], output: Any) -> None:
        """Call the observer, if there is one, with the inputs and the output of the part."""
        if self.observe is not None and self.path:
            self.observe(self.path, inputs, output)


def reported(oracle: Callable[Concatenate[Setting, P], T]) -> Callable[Concatenate[Setting, P], T]:
    """Return `oracle` so that it reports its inputs and its output to the setting's observer."""

    @wraps(oracle)
    def reporting(given: Setting, /, *inputs: P.args, **named: P.kwargs) -> T:
        output = oracle(given, *inputs, **named)
        given.report((*inputs, *named.values()), output)
        return output

    return reporting
