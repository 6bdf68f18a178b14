"""Gates alone, with the projections of a feed-forward network around them.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.unspecified.gates import gate_alone
from attentest.targets.adapt.wrappers.wrapper import WIDTHS, Read, Wrapper


class Networked(nn.Module):
    """The feed-forward network of `gate`, which halves its columns, at the two `widths`."""

    def __init__(self, gate: Any, widths: tuple[int, int]) -> None:
        super().__init__()
        width, inner = widths
        self.inner, self.gate = nn.Linear(width, 2 * inner), gate
        self.output = nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the projected product of the halves of the projected `x`."""
        return self.output(self.gate(self.inner(x)))  # type: ignore[no-any-return]  # of torch


NETWORKED_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Networked),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = (
    "assumed that it is the gate of a feed-forward network: it has no parameters and halves its "
    "columns, and is judged between two projections. If you meant a network, this is a mistake, "
    "and --strict asks"
)


B = TypeVar("B", bound=Read)


def network_of_gate(code: Code, reading: Reading, read: Callable[[Code, Reading], B]) -> B | None:
    """Return the backend of a gate alone in the network around it, None for other code."""
    if code.component != "feed_forward" or code.wrapper is not None or reading.strict:
        return None
    try:
        with undisturbed():
            gate = code.build(SIZES)
    except Exception:  # code that a user wrote may raise anything
        return None
    if not gate_alone(gate, torch.float64):
        return None
    signature = inspect.signature(Networked.forward)
    own = signature.replace(parameters=[*signature.parameters.values()][1:])
    around = Wrapper(Networked, NETWORKED_SOURCE, WIDTHS, _SENTENCE)
    return read(replace(code.wrapped(around), signature=own), reading)
