"""One call of a class that embeds its tokens itself, as its layers show it."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from torch import Tensor, nn

from attentest.targets.adapt.encoders.stack import is_same, replaced
from attentest.targets.adapt.parameters.units import squeezed
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear


class Seen:
    """Watches one call: the shape that the first layer gets, and the norm after the last one.

    `several` says that the first layer gets another tensor of that shape beside its input.
    """

    def __init__(self, module: nn.Module, layers: str) -> None:
        self.module = module
        self.path = layers
        self.layers = module.get_submodule(layers)
        self.called: set[str] = set()
        self.shape: tuple[int, ...] = ()
        self.several = False
        self.norm = ""
        self.output: Any = None
        self.watching = ExitStack()

    def __enter__(self) -> None:
        layers = list(self.layers.children())
        inside = set(self.layers.modules())
        for name, one in self.layers.named_children():
            self.watching.enter_context(replaced(one, partial(self._call, name)))
        self.watching.enter_context(replaced(layers[0], self._enter))
        self.watching.enter_context(replaced(layers[-1], self._leave))
        for path, one in self.module.named_modules():
            sizes = {tuple(squeezed(tuple(held.shape))) for held in one.parameters()}
            if one not in inside and len(sizes) == 1 and len(next(iter(sizes))) == 1:
                self.watching.enter_context(replaced(one, partial(self._norm, path)))

    def __exit__(self, *_: object) -> None:
        self.watching.close()

    @property
    def reason(self) -> str:
        """The reason why layers cannot be judged with the rest, "" where the call shows none."""
        if self.several:
            return (
                "its first layer gets another tensor of the shape of its input, which nothing says "
                "how to give. Name the class of its layers alone."
            )
        names = [name for name, _ in self.layers.named_children() if name not in self.called]
        if not names or not self.called:
            return ""
        return (
            f"does not call {' and '.join(f'{self.path}.{name}' for name in names)}: that is a "
            f"mistake, or a design that the spec does not have. Name the class of its layers alone."
        )

    def _call(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        self.called.add(name)
        return call(*args, **named)

    def _enter(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        first, *rest = (one for one in (*args, *named.values()) if isinstance(one, Tensor))
        self.shape = tuple(first.shape)
        self.several = any(one.shape == first.shape and not is_same(one, first) for one in rest)
        return call(*args, **named)

    def _leave(self, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        output = call(*args, **named)
        self.output = output[0] if isinstance(output, tuple) else output
        return output

    def _norm(self, path: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if self.output is not None and args and args[0] is self.output:
            self.norm = path
        return call(*args, **named)


def is_answered(module: nn.Module, calls: Iterable[Mapping[str, Any]]) -> bool:
    """Say whether one of `calls` of `module` succeeds."""
    for given in calls:
        with suppress(Exception), undisturbed():  # code that a user wrote may raise anything
            module(**given)
            return True
    return False


class Uncalled(Unclear):
    """Layers that no call of their class reached as it should; its text is the question.

    Calls with sequences of `lengths` succeed.
    """

    lengths: tuple[int, ...] = ()


def uncalled(name: str, where: str, failure: str, lengths: Iterable[int]) -> Uncalled:
    """Return the question about the layers at `where`, of code that takes `lengths` alone."""
    fixed = tuple(lengths)
    question = Uncalled(
        f"{name} embeds its tokens itself, and its layers ({where}) could not be called through "
        f"it: {failure}.{FIXED_LENGTH * bool(fixed)} Name the class of its layers alone, with --as "
        f"encoder, or its parts one by one."
    )
    question.lengths = fixed
    return question


def lengths_in(failure: str, longest: int, width: int) -> list[int]:
    """Return the lengths that the failure of a call names, with the `longest` of what was built.

    A matrix over all rows, side by side, has so many times the `width` columns.
    """
    named = [int(one) for one in re.findall(r"(?<!\d)\d{1,6}(?!\d)", failure)]
    named += [one // width for one in named if one > width and not one % width]
    is_one = re.search("size|shapes", failure) is not None
    return [
        one for one in dict.fromkeys([longest, *named]) if 1 < one < 10_000 and named and is_one
    ]


FIXED_LENGTH = (
    " Its code seems to take sequences of its greatest length alone, as a table of positions that "
    "is added whole does: cut it to the length of the input, as in pe[:, : x.size(1)]."
)
