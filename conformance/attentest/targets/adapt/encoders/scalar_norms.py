"""Encoders whose norms train one number for all columns: they are judged with one for each.

The class needs one function of the suite: reproductions and written adapters contain both sources.
"""

import inspect
from typing import Any

from torch import nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest.targets.models.tables.single_numbers import (
    IN_COLUMNS_SOURCE,
    SAID,
    in_columns,
    scalar_norms,
)


class InColumns(nn.Module):
    """The stack `module` whose norms of the class `kind` hold their number for each of `width`."""

    def __init__(self, module: nn.Module, width: int, *, kind: str) -> None:
        super().__init__()
        self.module = in_columns(module, width, kind)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the stack returns."""
        return self.module(*args, **named)


SOURCE = "\n".join(
    ["from typing import Any", "", IN_COLUMNS_SOURCE, "", inspect.getsource(InColumns)]
)
"""The class as code of its own, for a reproduction or a written adapter."""


def with_columns(code: Code) -> Code:
    """Return the stack `code` with a number for each column in norms that hold one for all.

    Itself where it has no such norms, or where they are none by their numbers, as a scale norm.
    """
    kind = scalar_norms(code.build, DISTINCT) if code.wrapper is None else ""
    if not kind:
        return code
    options = {"kind": kind}
    return code.wrapped(Wrapper(InColumns, SOURCE, WIDTH, SAID.format(kind), options))
