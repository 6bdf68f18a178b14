"""Networks in the place of mixtures of experts: the rest of a decoder-only model is judged.

The classes need nothing else of the suite: reproductions and written adapters contain their source.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from attentest.targets.deep_copies import copy_of


class InPlace(nn.Module):
    """A `network` in the place of a `mixture` of experts; neither is a part of it.

    Where the network is not `alone` the mixture is called as well: whatever it returns besides, and
    its fields, are its own.
    """

    def __init__(self, mixture: nn.Module, network: nn.Module, *, alone: bool = False) -> None:
        super().__init__()
        self.alone = alone
        self.__dict__["mixture"], self.__dict__["network"] = mixture, network

    @property  # type: ignore[misc]  # it is never set
    def __class__(self) -> Any:
        """The class of the mixture: code may ask which one it is."""
        return type(self.__dict__["mixture"])

    def __getattr__(self, name: str) -> Any:
        """Return a field of the mixture where there is none of that name."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "mixture" not in self.__dict__:
                raise
            return getattr(self.__dict__["mixture"], name)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.__dict__["mixture"]._apply(fn, recurse)
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def train(self, mode: bool = True) -> "InPlace":
        """Set the mode of both."""
        self.__dict__["mixture"].train(mode)
        return super().train(mode)

    def forward(self, *args: Any, **given: Any) -> Any:
        """Return what the mixture does, with the rows of the network in the place of its own."""
        x = next(one for one in (*args, *given.values()) if isinstance(one, Tensor))
        if self.alone:
            return self.network(x)
        with torch.no_grad():
            made = self.__dict__["mixture"](*args, **given)
        found, form = tree_flatten(made)
        tensors = [isinstance(one, Tensor) and one.shape == x.shape for one in found]
        found[tensors.index(True)] = self.network(x)
        return tree_unflatten(found, form)


class Plain(nn.Module):
    """A network of two matrices, with rows of `width` and an `inner` width."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows (B, T, D) that it makes of x (B, T, D)."""
        rows: Tensor = self.down(self.up(x).relu())
        return rows


def networked(
    model: nn.Module,
    kinds: Sequence[str],
    *,
    expert: str = "",
    dense: str = "",
    widths: tuple[int, int] = (1, 1),
    alone: bool = False,
) -> nn.Module:
    """Return `model` with a network in the place of each module of the classes `kinds`.

    It is a copy of its own `expert`, or of the network of another layer, whose class is `dense`, or
    one of the `widths`. All networks are held by their layers, under one name. The modules are not
    called where the networks are `alone`.
    """
    found: dict[str, nn.Module] = {}
    for path, one in model.named_modules():
        if type(one).__name__ in kinds and not any(path.startswith(f"{own}.") for own in found):
            found[path] = one
    held = {id(part) for one in found.values() for part in one.modules()}
    others = {path: one for path, one in model.named_modules() if id(one) not in held}
    others = {path: one for path, one in others.items() if dense and type(one).__name__ == dense}
    for path, one in {**found, **others}.items():
        if path in others:
            network = one
        elif expert:
            network = copy_of(one.get_submodule(expert))
        elif others:
            network = redrawn(copy_of(next(iter(others.values()))))
        else:
            network = Plain(*widths)
        parent, _, own = path.rpartition(".")
        setattr(model.get_submodule(parent), own, InPlace(one, network, alone=alone))
        parts = path.split(".")
        depth = max((at for at, part in enumerate(parts, 1) if part.isdigit()), default=0)
        model.get_submodule(".".join(parts[:depth])).add_module("network_in_place", network)
    return model


def redrawn(network: nn.Module) -> nn.Module:
    """Return `network` with other random numbers in its matrices."""
    for one in network.parameters():
        if one.dim() > 1:
            one.data = torch.randn_like(one) * one.detach().std()
    return network


NETWORKED_SOURCE = "\n\n".join(
    [
        "import copy\nfrom collections.abc import Sequence\nfrom typing import Any\n",
        "import torch\nfrom torch import Tensor, nn\n"
        "from torch.utils._pytree import tree_flatten, tree_unflatten\n\n",
        *(f"{inspect.getsource(one)}\n" for one in (InPlace, Plain, networked, redrawn)),
    ]
)
"""The classes and functions as code of their own."""
