"""Calls a loss as the contract does: shapes, padding, and what else its arguments are given."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.losses.names import LOSS_LENGTHS, LOSS_MASK, LOSS_NUMBER, LOSS_SIZES
from attentest.targets.adapt.reading import Reading
from attentest_spec import Sizes, Unsupported

SHAPES: Mapping[str, tuple[str, str]] = {
    "rows": ("output", "target"),
    "flat": ("output.flatten(0, 1)", "target.flatten()"),
    "columns": ("output.transpose(1, 2)", "target"),
}
"""The expressions of output and target in each shape: (B, T, V), (B * T, V) and (B, V, T)."""

WORDS = {
    "rows": "output (B, T, V), target (B, T)",
    "flat": "output (B * T, V), target (B * T)",
    "columns": "output (B, V, T), target (B, T)",
}

MASKS: Mapping[str, str] = {
    "keep": "(target != pad)",
    "keep as numbers": "(target != pad).to(output.dtype)",
    "hide": "(target == pad)",
}
"""The expressions of a mask argument: what counts, as numbers too, or what does not."""


@dataclass(frozen=True)
class Held:
    """A built loss that is no module, and the pad id of the targets."""

    thing: Callable[..., Any]
    pad: int


class HeldModule(nn.Module):
    """A built loss that is a module, and the pad id of the targets."""

    def __init__(self, thing: nn.Module, pad: int) -> None:
        super().__init__()
        self.thing, self.pad = thing, pad


@dataclass(frozen=True)
class LossCall:
    """The conventions of one loss.

    `output` and `target` are its arguments for these, `sizes` those that get a size at each call.
    `shape` is one of :data:`SHAPES`. `marker` is what padding is replaced by, None for the pad id
    itself. `number` gets the number of targets that count, `mask` says which do, in the form
    `form`. `part` is the place of the loss in a tuple. `lengths` gets the number of targets in each
    row: padding is moved to the ends of the rows, and rows without targets are left out.
    """

    output: str
    target: str
    sizes: Mapping[str, str] = field(default_factory=dict)
    shape: str = "rows"
    marker: int | None = None
    number: str = ""
    mask: str = ""
    form: str = "keep"
    part: int | None = None
    lengths: str = ""

    def __call__(self, built: Held | HeldModule, output: Tensor, target: Tensor) -> Any:
        """Return the loss of `built` for the contract's inputs."""
        result = built.thing(**self.given(built.pad, output, target))
        result = result if self.part is None else result[self.part]
        return result.reshape(()) if isinstance(result, Tensor) and result.numel() == 1 else result

    def given(self, pad: int, output: Tensor, target: Tensor) -> dict[str, Any]:
        """Return the arguments by their names."""
        keep = target != pad
        if self.marker is not None and bool((target == self.marker).any()):
            raise Unsupported(f"a target of {self.marker} is its padding")
        counted = target if self.marker is None else target.masked_fill(~keep, self.marker)
        whole, words = {
            "rows": lambda: (output, counted),
            "flat": lambda: (output.flatten(0, 1), counted.flatten()),
            "columns": lambda: (output.transpose(1, 2), counted),
        }[self.shape]()
        found: dict[str, Any] = {self.output: whole, self.target: words}
        if self.number:
            found[self.number] = keep.sum()
        if self.lengths:
            order, rows = (~keep).long().argsort(dim=1, stable=True), keep.any(1)
            if not bool(rows.any()):
                raise Unsupported("lengths are those of rows with targets")
            found[self.output] = whole.gather(1, order[:, :, None].expand_as(whole))[rows]
            found[self.target] = words.gather(1, order)[rows]
            found[self.lengths] = keep.sum(1)[rows]
        if self.mask:
            mask = ~keep if self.form == "hide" else keep
            mask = mask.to(output.dtype) if self.form == "keep as numbers" else mask
            found[self.mask] = mask.flatten() if self.shape == "flat" else mask
        return found

    def code(self, function: str, pad: str, sizes: Mapping[str, str]) -> str:
        """Return the call of `function` as an expression of `output` and `target`.

        `pad` is the expression of the pad id, `sizes` are those of the other arguments.
        """
        output, target = SHAPES[self.shape]
        if self.marker is not None:
            marked = f"target.masked_fill(target == {pad}, {self.marker})"
            target = target.replace("target", marked, 1)
        given = {self.output: output, self.target: target}
        if self.number:
            given[self.number] = f"(target != {pad}).sum()"
        if self.lengths:
            rows, order = (
                f"[(target != {pad}).any(1)]",
                f"(target == {pad}).long().argsort(dim=1, stable=True)",
            )
            wide = f"({order})[:, :, None].expand_as(output)"
            given[self.output] = f"output.gather(1, {wide}){rows}"
            given[self.target] = f"target.gather(1, {order}){rows}"
            given[self.lengths] = f"(target != {pad}).sum(1){rows}"
        if self.mask:
            flat = ".flatten()" if self.shape == "flat" else ""
            given[self.mask] = MASKS[self.form].replace("pad", pad) + flat
        named = ", ".join(f"{own}={one}" for own, one in {**given, **sizes}.items())
        called = f"{function}({named})"
        return called if self.part is None else f"{called}[{self.part}]"


def sizes_given(code: Code, reading: Reading) -> dict[str, str]:
    """Return the arguments of the call that get a size, with the size."""
    asked = {own: size for size, own in reading.arguments.items()}
    found = {}
    for own, one in code.signature.parameters.items():
        size = asked.get(own, LOSS_SIZES.get(squashed(own), ""))
        tiny = isinstance(one.default, float) and 0 < one.default < _TINY
        switch = isinstance(one.default, bool) and own not in asked
        if size in LOSS_SIZES.values() and own not in reading.given and not (tiny or switch):
            found[own] = size
    return found


def switches(code: Code, reading: Reading) -> list[str]:
    """Return the arguments of the call that turn label smoothing on, and carry no rate of it."""
    return [
        own
        for own, one in code.signature.parameters.items()
        if isinstance(one.default, bool)
        and LOSS_SIZES.get(squashed(own)) == "smoothing"
        and own not in (*reading.given, *reading.arguments.values())
    ]


_TINY = 1e-3
"""A default below it is no rate of smoothing, but a constant that keeps a logarithm finite."""


def extra(code: Code, reading: Reading) -> tuple[str, str, str]:
    """Return the arguments that get the number of targets, their mask, and those in each row."""
    free = [
        one.name
        for one in code.signature.parameters.values()
        if one.name not in reading.given and one.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    number = next((own for own in free if squashed(own) in LOSS_NUMBER), "")
    masks = [own for own in free if squashed(own) in LOSS_MASK]
    # An optional weight is one for each class, and a mask may be optional.
    needed = [own for own in masks if "mask" in own or _required(code, own)]
    mask = next(iter(needed), "")
    lengths = [own for own in free if squashed(own) in LOSS_LENGTHS and _required(code, own)]
    return number, mask, next(iter(lengths), "")


def _required(code: Code, own: str) -> bool:
    return code.signature.parameters[own].default is inspect.Parameter.empty


def holding(code: Code, sizes: Mapping[str, str], given: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that builds the loss at sizes, with what each call is given of them."""

    def build(at: Sizes) -> Held | HeldModule:
        thing = code.build(at)
        rest = {own: getattr(at, size) for own, size in sizes.items()} | dict(given)
        if isinstance(thing, nn.Module) and not rest:
            return HeldModule(thing, at.target_pad)
        return Held((lambda **named: thing(**named, **rest)) if rest else thing, at.target_pad)

    return build
