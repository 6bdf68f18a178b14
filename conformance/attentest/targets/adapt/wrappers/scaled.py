"""Positional encodings that multiply their input by the root of the width, as an embedding does.

The class needs nothing else of the suite: reproductions and written adapters contain its source.
"""

import inspect
from collections.abc import Iterator
from math import sqrt
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.advice.other_tables import other_table
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.probing import SIZES, Probe
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.wrappers.wrapper import WIDTH, Wrapper
from attentest_spec.torch import to_array


class Unscaled(nn.Module):
    """The result of `encoding` for its input, called `argument`, divided by the root of `width`.

    A gradient that is that of the result but for the rounding of the division is made that one.
    """

    def __init__(self, encoding: nn.Module, width: int, *, argument: str) -> None:
        super().__init__()
        self.encoding, self.root, self.argument = encoding, width**0.5, argument

    def forward(self, *args: Any, **named: Any) -> Any:
        """Return what the encoding returns."""
        own = (args[0] if args else named[self.argument]) * 1
        given = {} if args else {self.argument: own / self.root}
        output = self.encoding(*[own / self.root] * bool(args), *args[1:], **{**named, **given})
        pulled: list[Any] = []

        def rounded(found: Any) -> Any:
            if not pulled or pulled[-1].shape != found.shape:
                return found
            most = 4 * torch.finfo(found.dtype).eps * pulled[-1].abs()
            return torch.where((found - pulled[-1]).abs() <= most, pulled[-1], found)

        if own.requires_grad and getattr(output, "requires_grad", False):
            output.register_hook(pulled.append)
            own.register_hook(rounded)
        return output


_SOURCE = "\n".join(
    [
        "from typing import Any",
        "",
        "import torch",
        "from torch import nn",
        "",
        "",
        inspect.getsource(Unscaled),
    ]
)

_SENTENCE = (
    "assumed that it multiplies its input by the root of d_model in the place of the embedding, "
    "which does so in the paper: it is judged with an input that is divided by that. If the "
    "embedding does it too, this is a mistake, and --strict reports it"
)


def without_scale(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> Iterator[Code]:
    """Yield an encoding that multiplies its input by the root of the width, with this undone."""
    may_be = code.component == "positional_encoding" and code.construction is not None
    if (
        not may_be
        or code.wrapper is not None
        or reading.strict
        or "x" not in adapter.arguments.roles
    ):
        return
    if abs(_factor(probe, adapter) - sqrt(SIZES.d_model)) <= LOOSE:
        options = {"argument": adapter.arguments.roles["x"]}
        yield code.wrapped(Wrapper(Unscaled, _SOURCE, WIDTH, _SENTENCE, options))


def _factor(probe: Probe, adapter: Adapter) -> float:
    """Return the number that an encoding multiplies its input by, 1 where there is no such one."""
    given = probe.given(adapter)
    still = {name: torch.zeros_like(value) for name, value in given.items()}
    before, after = probe.called(adapter, still), probe.called(adapter, given)
    (x,) = given.values()
    if isinstance(before, str) or isinstance(after, str) or after.shape != x.shape:
        return 1.0
    factor = float(((after - before) * x).sum() / x.square().sum())
    close = (after - before - factor * x).abs().max() <= LOOSE * x.abs().max()
    return factor if close else 1.0


def scaled_input(probe: Probe, adapter: Adapter) -> str:
    """Recognise an encoding that multiplies its input before it adds the table; "" for others."""
    factor = _factor(probe, adapter)
    if abs(factor - 1) <= LOOSE or abs(factor) <= LOOSE:
        return ""
    root = ", the root of d_model" if abs(factor - sqrt(SIZES.d_model)) <= LOOSE else ""
    fixed = not isinstance(probe.built, nn.Module) or not list(probe.built.parameters())
    still = {name: torch.zeros_like(value) for name, value in probe.given(adapter).items()}
    called = probe.called(adapter, still)
    table = called if fixed and isinstance(called, torch.Tensor) else None
    if table is not None and not table.any():
        return f"it multiplies its input by {factor:.4g}{root}, and adds no positions to it"
    named = "" if table is None else other_table(to_array(table[0]))
    return (
        f"it multiplies its input by {factor:.4g}{root}: it is the scale of the embedding and the "
        f"positional encoding in one{named}"
    )
