"""Residual connections that take the result of the sublayer, and not the sublayer itself.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Callable
from dataclasses import replace
from inspect import Parameter, Signature
from typing import Any, TypeVar

from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Read, Wrapper, fitting

COMPONENT = "residual"

_KEPT = words("residual skip shortcut identity res resid inputtensor skipinput residualinput")
"""Names of the input that is passed on, whatever the other one is called."""

_INPUT = words("x input inputs src h hidden")
"""Names of the input next to the result of the sublayer."""

_RESULT = words(
    "y output out sublayeroutput sublayerout sublayery sublayerx sublayerresult branch fx newx "
    "delta update suboutput outputs xsub"
)
"""Names of the result of the sublayer."""


class Applied(nn.Module):
    """Calls `connection` with x as its argument `kept`, and sublayer(x) as `branch`."""

    def __init__(self, connection: nn.Module, width: int, *, kept: str, branch: str) -> None:
        super().__init__()
        self.connection = connection
        self.width, self.kept, self.branch = width, kept, branch

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Any:
        """Return what `connection` makes of x (B, T, D) and the result of the sublayer."""
        return self.connection(**{self.kept: x, self.branch: sublayer(x)})


APPLIED_SOURCE = "\n".join(
    [
        "from collections.abc import Callable",
        "from typing import Any",
        "",
        "from torch import Tensor, nn",
        "",
        "",
        inspect.getsource(Applied),
    ]
)
"""The class as code of its own, for a reproduction or a written adapter."""

_SENTENCE = (
    "assumed that {} is the result of the sublayer and {} its input, as their names say: it is "
    "judged as its caller uses it"
)

B = TypeVar("B", bound=Read)


def applied_by_caller(code: Code, reading: Reading, read: Callable[[Code, Reading], B]) -> B | None:
    """Return the backend of a residual sum of two tensors, None where it is none by its numbers."""
    if code.component != COMPONENT or code.construction is None or code.wrapper is not None:
        return None
    if reading.strict or reading.arguments or not (two := _kept_and_branch(code.signature)):
        return None
    kept, branch = two
    sentence = _SENTENCE.format(branch, kept)
    options = {"kept": kept, "branch": branch}
    around = Wrapper(Applied, APPLIED_SOURCE, WIDTH, sentence, options)
    called = inspect.signature(Applied.forward)
    own = called.replace(parameters=list(called.parameters.values())[1:])
    return fitting(replace(code.wrapped(around), signature=own), reading, read)


def _kept_and_branch(signature: Signature) -> tuple[str, str] | None:
    """Return the arguments of the input and of the result of the sublayer, by their names."""
    needed = [own for own, one in signature.parameters.items() if one.default is Parameter.empty]
    if len(needed) != 2 or len(signature.parameters) != 2:
        return None
    for kept, branch in (needed, needed[::-1]):
        own, other = squashed(kept), squashed(branch)
        if own in _KEPT or (own in _INPUT and other in _RESULT):
            return kept, branch
    return None
