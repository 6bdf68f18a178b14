"""One layer for all depths, as in ALBERT: what holds it is judged with one for each depth.

The class and the function need nothing else of the suite: reproductions and written adapters
contain their source.
"""

import copy
import inspect
from typing import Any

from torch import nn


class InLoop(nn.ModuleList):
    """Copies of one layer: the calls of it in one call of what holds it get one each, in order."""

    def __init__(self, layer: nn.Module, times: int) -> None:
        super().__init__(copy.deepcopy(layer) for _ in range(times))
        self.turn = 0

    def restart(self, *_: object) -> None:
        """Begin with the first one again."""
        self.turn = 0

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the next layer returns."""
        self.turn += 1
        return self[self.turn - 1](*args, **named)


def own_layers(model: nn.Module, path: str, times: int) -> nn.Module:
    """Return `model` with `times` copies of the layer at `path`, one for each of its calls."""
    layer, names = model.get_submodule(path), path.split(".")
    above = [model.get_submodule(".".join(names[:end])) for end in range(len(names))]
    made = InLoop(layer, times)
    for one in above:
        one.register_forward_pre_hook(made.restart)
    setattr(above[-1], names[-1], made)
    return model


OWN_LAYERS_SOURCE = "\n".join(
    [
        *("import copy", "from typing import Any", "", "from torch import nn", "", ""),
        *(inspect.getsource(InLoop), "", inspect.getsource(own_layers)),
    ]
)
"""The class and the function as code, for a reproduction or a written adapter."""

_ONE = (
    "assumed that one layer for all depths, {}, is meant, as in ALBERT: this spec has one for each "
    "depth, and it is judged with one for each"
)


def one_for_all(path: str) -> list[str]:
    """Return what is assumed of the one layer at `path`, nothing for none."""
    return [_ONE.format(path)] if path else []
