"""The setting of an oracle: sizes, choices and parameters; and the types of arrays."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

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

Displace = Callable[[Annotated[Array, "*rows"]], Annotated[Array, "*rows"]]
"""A function of the positions (..) that rotary positions turn by, which returns others (..)."""

Normalise = Callable[[Annotated[Array, "*rows K"]], Annotated[Array, "*rows K"]]
"""A function of scores (.., K) that returns weights (.., K)."""


class _Inner(Mapping[str, Floats]):
    """The `parameters` whose names begin with `prefix`, under their names without it.

    A view and no copy: every part of every oracle is given one, and most ask for two names.
    """

    __slots__ = ("_parameters", "_prefix")

    def __init__(self, parameters: Mapping[str, Floats], prefix: str) -> None:
        self._parameters = parameters
        self._prefix = prefix

    @classmethod
    def of(cls, parameters: Mapping[str, Floats], prefix: str) -> "_Inner":
        if isinstance(parameters, _Inner):  # of the names themselves, however deep the part lies
            return cls(parameters._parameters, parameters._prefix + prefix)
        return cls(parameters, prefix)

    def __getitem__(self, name: str) -> Floats:
        return self._parameters[self._prefix + name]

    def get(self, name: str, default: Any = None) -> Any:
        return self._parameters.get(self._prefix + name, default)

    def __iter__(self) -> Iterator[str]:
        cut = len(self._prefix)
        return (name[cut:] for name in self._parameters if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


@dataclass(frozen=True)
class Setting:
    """The sizes, the choices and the canonical parameters of one component.

    `parameters` maps canonical names, relative to the component, to float64 arrays. `path` is the
    canonical name of the current part, "" for the component itself; `observe` is called with the
    inputs and the output of every part inside. `normalise` takes the place of the softmax of
    attention, and `displace` changes the positions of rotary positions inside attention, for
    measurements of what rounding does to an output.
    """

    sizes: Sizes = field(default_factory=Sizes)
    choices: Choices = PAPER
    parameters: Mapping[str, Floats] = field(default_factory=dict)
    path: str = ""
    observe: Observe | None = field(default=None, compare=False, repr=False)
    normalise: Normalise | None = field(default=None, compare=False, repr=False)
    displace: Displace | None = field(default=None, compare=False, repr=False)

    def __getitem__(self, name: str) -> Floats:
        """Return the parameter `name`, in its canonical shape."""
        return self.parameters[name]

    def get(self, name: str) -> Floats | None:
        """Return the parameter `name` in its canonical shape; None for a bias left out."""
        return self.parameters.get(name)

    def under(self, prefix: str) -> "Setting":
        """Return the setting of the part named `prefix`: its parameters, without the prefix."""
        inner = _Inner.of(self.parameters, prefix + ".")
        path = f"{self.path}.{prefix}" if self.path else prefix
        # Not by `replace` or the constructor, which sets one attribute after the other and takes
        # three times as long: every part of every oracle comes this way.
        made = object.__new__(Setting)
        made.__dict__.update(self.__dict__, parameters=inner, path=path)
        return made

    def report(self, inputs: tuple[Any, ...], output: Any) -> None:
        """Call the observer, if there is one, with the inputs and the output of the part."""
        if self.observe is not None and self.path:
            self.observe(self.path, inputs, output)


def reported(oracle: Callable[Concatenate[Setting, P], T]) -> Callable[Concatenate[Setting, P], T]:
    """Return `oracle` so that it reports its inputs and its output to the setting's observer."""

    @wraps(oracle)
    def reporting(given: Setting, /, *inputs: P.args, **named: P.kwargs) -> T:
        output = oracle(given, *inputs, **named)
        if given.observe:
            given.report((*inputs, *named.values()), output)
        return output

    return reporting
