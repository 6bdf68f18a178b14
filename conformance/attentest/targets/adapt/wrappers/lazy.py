"""Lazy modules of torch, whose parameters get their shapes at the first call.

The functions need nothing else of the suite: written adapters contain their source.
"""

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy


def materialised(made: Any, sizes: Any) -> Any:
    """Return `made`, whose lazy parameters have shapes where one call at `sizes` gives them."""
    if not isinstance(made, nn.Module) or not any(is_lazy(one) for one in made.parameters()):
        return made
    for given in lazy_inputs(made, sizes):
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                made(*given)
        except Exception:  # code that a user wrote may raise anything
            continue
        if not any(is_lazy(one) for one in made.parameters()):
            break
    return made


def lazy_inputs(made: nn.Module, sizes: Any) -> Iterator[list[Tensor | None]]:
    """Yield vectors and then tokens for the required arguments, the last of which may be None.

    Optional ones, of which there are a few, are given after that.
    """
    called = inspect.signature(made.forward).parameters.values()
    needed = [one for one in called if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    rest = [one for one in called if one.default is None and one.kind is not one.KEYWORD_ONLY]
    inputs = torch.zeros(1, 3, sizes.d_model), torch.ones(1, 3, dtype=torch.int64)
    for x in inputs:
        for count in range(len(needed), 0, -1):
            yield [x] * count + [None] * (len(needed) - count)
    for x in inputs if len(rest) <= 3 else ():
        for kept in itertools.product((True, False), repeat=len(rest)):
            optional: list[Tensor | None] = [x if one else None for one in kept]
            yield [*[x] * len(needed), *optional]


LAZY_SOURCE = "\n".join(
    [
        "import inspect",
        "import itertools",
        "from collections.abc import Iterator",
        "from typing import Any",
        "",
        "import torch",
        "from torch import Tensor, nn",
        "from torch.nn.parameter import is_lazy",
        "",
        "",
        inspect.getsource(materialised),
        "",
        inspect.getsource(lazy_inputs),
    ]
)
"""The functions as code of their own, for a written adapter."""
