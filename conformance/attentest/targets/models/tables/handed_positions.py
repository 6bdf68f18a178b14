"""Tables of positions that a constructor is given: models are judged with sines and cosines.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.components import squashed


def sines(rows: int, width: int) -> Tensor:
    """Return the table of positions (`rows`, `width`) of sines and cosines, in alternation."""
    powers = 10000.0 ** (torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.arange(rows, dtype=torch.float64)[:, None] / powers
    table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]
    return table.to(torch.get_default_dtype())


SINES_SOURCE = "import torch\nfrom torch import Tensor\n\n\n" + inspect.getsource(sines)
"""The function as code of its own, for a reproduction or a written adapter."""

_NAMES = re.compile(r"(pos|position|positional)(al)?(enc|encoding|encodings|table|matrix|pe)$|pe$")

GIVEN = (
    "assumed that {} is a table of sines and cosines, and no other: it is given to the "
    "constructor, and nothing is said of the table that other code makes"
)


def table_given(own: str, thing: Callable[..., Any], default: object) -> str:
    """Return the expression of a table of positions for the argument `own`, "" for another one.

    The code of `thing` and around it takes rows of what has that name, and does not call it.
    """
    if default not in (inspect.Parameter.empty, None) or not _NAMES.match(squashed(own)):
        return ""
    home = sys.modules.get(getattr(thing, "__module__", ""))
    try:
        source = inspect.getsource(home) if home is not None else ""
    except (OSError, TypeError):
        return ""
    sliced = re.search(rf"\b{re.escape(own)}\s*\[(\s*:\s*,)?", source)
    if sliced is None or re.search(rf"\b{re.escape(own)}\s*\((?!self)", source):
        return ""
    return f"sines(sizes.max_length, sizes.d_model){'[None]' if sliced[1] else ''}"


def table_doubts(expression: str) -> Iterator[str]:
    """Yield what is assumed of the arguments that get a table of positions."""
    given = re.findall(rf"(\w+)={sines.__name__}\(", expression)
    yield from map(GIVEN.format, dict.fromkeys(given))
