"""What an oracle is given besides its inputs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from attentest_spec.choices import PAPER, Choices
from attentest_spec.sizes import Sizes

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """The sizes, the choices and the canonical parameters of one component.

    `parameters` maps canonical names, relative to the component, to float64 arrays.
    """

    sizes: Sizes = field(default_factory=Sizes)
    choices: Choices = PAPER
    parameters: Mapping[str, Floats] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Floats:
        """Return the parameter `name`."""
        return self.parameters[name]

    def get(self, name: str) -> Floats | None:
        """Return the parameter `name`, or None where there is none (a bias left out)."""
        return self.parameters.get(name)

    def under(self, prefix: str) -> "Setting":
        """Return the setting of the part named `prefix`: its parameters, names cut short."""
        start = prefix + "."
        inner = {
            name.removeprefix(start): array
            for name, array in self.parameters.items()
            if name.startswith(start)
        }
        return replace(self, parameters=inner)
