"""A class that is put around a user's module, and how it is written into code."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from torch import nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec import Sizes

WIDTH, HEAD_WIDTH = "sizes.d_model", "sizes.d_model // max(1, sizes.heads)"
WIDTHS = "(sizes.d_model, sizes.d_ff)"
SHAPES = "(sizes.d_model, sizes.d_ff, max(1, sizes.heads))"
"""The sizes that a wrapper may be built with, as expressions of `sizes`."""


@dataclass(frozen=True)
class Wrapper:
    """The class `cls`, called with a module, the size `width` and `options`.

    `source` is its code as a text of its own, and `sentence` says what it does. Choices that it
    `decides` are none of the module's. `known` are the sizes that it gives the code.
    """

    cls: type[nn.Module]
    source: str
    width: str
    sentence: str
    options: Mapping[str, Any] = field(default_factory=dict)
    decides: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()

    def size(self, sizes: Sizes) -> int | tuple[int, ...]:
        """Return the size that it is built with."""
        if self.width == SHAPES:
            return sizes.d_model, sizes.d_ff, max(1, sizes.heads)
        if self.width == WIDTHS:
            return sizes.d_model, sizes.d_ff
        return sizes.d_model if self.width == WIDTH else sizes.d_model // max(1, sizes.heads)

    def __call__(self, module: nn.Module, sizes: Sizes) -> nn.Module:
        """Return `module` with the class around it; the random numbers of others stay the same."""
        with undisturbed():
            return self.cls(module, self.size(sizes), **self.options)


class Read(Protocol):
    """A backend that was inferred."""

    @property
    def fits(self) -> bool:
        """Whether its numbers are those of the formula under some options."""


R = TypeVar("R", bound=Read)
C = TypeVar("C")


def fitting(code: C, reading: Reading, read: Callable[[C, Reading], R]) -> R | None:
    """Return the backend of `code` where its numbers fit, None where a question is left.

    Among several ways to put a class around code, a mistake in one of them proves nothing.
    """
    try:
        found = read(code, reading)
    except Unclear:
        return None
    return found if found.fits else None
