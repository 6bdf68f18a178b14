"""Decoder-only models whose caches a method makes before they can be called.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import copy
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.names import words
from attentest.targets.language_models.argument_names import POSITIONS, TOKENS, first_named
from attentest.targets.language_models.construction.building import Building

_METHODS = words("setupcaches setupcache setupkvcache setupkvcaches initcaches initkvcache")
_ROWS = words("maxbatchsize batchsize bsz maxbatch batch maxbs bs")
_STEPS = words("maxseqlength maxseqlen seqlen length maxlength maxlen seqlength maxsequencelength")


class SetUp(nn.Module):
    """A `model` of which a copy gets caches by `method` for each call; the parameters are its own.

    `rows` and `steps` are the arguments of the method, `tokens` and `positions` those of a call.
    """

    def __init__(
        self, model: nn.Module, method: str, rows: str, steps: str, tokens: str, positions: str
    ) -> None:
        super().__init__()
        self.model, self.method, self.sizes = model, method, (rows, steps)
        self.names = tokens, positions

    def forward(self, tokens: Tensor) -> Any:
        """Return what the copy returns for `tokens` (B, T) from the first position on."""
        model = copy.deepcopy(self.model, {id(one): one for one in self.model.parameters()})
        with torch.no_grad():
            getattr(model, self.method)(**dict(zip(self.sizes, tokens.shape, strict=True)))
        steps = torch.arange(tokens.shape[1], device=tokens.device)
        return model(**dict(zip(self.names, (tokens, steps), strict=True)))


SET_UP_SOURCE = (
    "import copy\nfrom typing import Any\n\nimport torch\nfrom torch import Tensor, nn\n\n\n"
    + inspect.getsource(SetUp)
)
"""The class as code of its own."""

_SAID = (
    "assumed that {}({}, {}) makes caches for a call from the first position on: a text is given "
    "whole, and steps with a cache are not judged"
)


def with_set_up(built: Building, thing: Callable[..., Any]) -> Building | None:
    """Return `built` with caches that are made before each call, None where no method makes any."""
    if f"{SetUp.__name__}(" in built.expression or not inspect.isclass(thing):
        return None
    method = first_named(vars(thing), _METHODS)
    if not method:
        return None
    making, calling = (
        list(inspect.signature(getattr(thing, one)).parameters.values())[1:]
        for one in (method, "forward")
    )
    empty = inspect.Parameter.empty
    made, called = ({one.name: one for one in each} for each in (making, calling))
    needed = [own for own, one in {**made, **called}.items() if one.default is empty]
    found = (
        first_named(made, _ROWS),
        first_named(made, _STEPS),
        first_named(called, TOKENS),
        first_named(called, POSITIONS),
    )
    if not all(found) or set(needed) - {*found}:
        return None
    given = ", ".join(f'"{one}"' for one in (method, *found))
    return replace(
        built,
        expression=f"{SetUp.__name__}({built.expression}, {given})",
        space={**built.space, SetUp.__name__: SetUp},
        doubts=(*built.doubts, _SAID.format(method, *found[:2])),
    )
