"""The output and the weights within a result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.layouts import NUMBERS, Layout

_OUTPUT = (
    "output outputs out context contextvector attnoutput attentionoutput hiddenstates "
    "lasthiddenstate x result values y logits"
)
_WEIGHTS = (
    "weights attn attnweights attentionweights probs attnprobs attentionprobs attention alpha "
    "attentions p pattern"
)

Key = int | str


@dataclass(frozen=True)
class Returns:
    """The places of the output and the weights in a result; None for a part that is the whole.

    `attributes` says that names are those of attributes, and not keys of a mapping; `added` that
    the output is a table that its caller adds to the input.
    """

    output: Key | None = None
    weights: Key | None = None
    attributes: bool = False
    added: bool = False

    def picked(self, result: Any) -> tuple[Any, Any]:
        """Return the output and the weights (None where there are none)."""
        output = result if self.output is None else _part(result, self.output)
        return output, None if self.weights is None else _part(result, self.weights)

    def code(self, result: str, key: Key | None) -> str:
        """Return an expression for the part `key` of the value of the expression `result`."""
        if key is None:
            return result
        named = self.attributes and isinstance(key, str)
        return f"{result}.{key}" if named else f"{result}[{key!r}]"

    @property
    def words(self) -> str:
        """The returned value, in one phrase."""
        if self.added:
            return "the encoding alone, which its caller adds to the input"
        if self.output is None:
            return "the output alone"
        output = f"the output as {_shown(self.output)}"
        if self.weights is None:
            return output
        return f"{output}, the weights as {_shown(self.weights)}"


def returns(result: Any, output: tuple[int, ...], weights: tuple[int, ...]) -> Returns | None:
    """Return where a tensor of shape `output` stands in `result`; None where there is none.

    The names of a dictionary or a named tuple decide before the shapes do.
    """
    if isinstance(result, Tensor):
        return Returns() if tuple(result.shape) == output else None
    if isinstance(result, list) and _are_states(result, output):
        return Returns(-1)  # there are as many as there are layers
    parts = dict(_parts(result))
    found = _named(parts, _OUTPUT, output)
    if found is None:
        return None
    rest = {key: part for key, part in parts.items() if key != found}
    return Returns(found, _named(rest, _WEIGHTS, weights), not isinstance(result, Mapping))


def _are_states(result: list[Any], output: tuple[int, ...]) -> bool:
    """Say whether a list holds the states behind all layers, the last of which is the output."""
    shapes = [tuple(one.shape) for one in result if isinstance(one, Tensor)]
    return len(result) > 1 and shapes == [output] * len(result)


def _named(parts: Mapping[Key, Tensor], names: str, shape: tuple[int, ...]) -> Key | None:
    named = [key for key in parts if squashed(str(key)) in names.split()]
    return next((key for key in named or parts if tuple(parts[key].shape) == shape), None)


def _parts(result: Any) -> Iterator[tuple[Key, Tensor]]:
    """Yield the tensors of a tuple, a list, a named tuple, a dictionary or a data class."""
    if isinstance(result, tuple | list):
        pairs: Iterator[tuple[Key, Any]] = iter(zip(_fields(result), result, strict=True))
    elif isinstance(result, Mapping):
        pairs = iter(result.items())
    else:
        pairs = iter(vars(result).items()) if hasattr(result, "__dict__") else iter(())
    yield from ((key, part) for key, part in pairs if isinstance(part, Tensor))


def _fields(result: tuple[Any, ...] | list[Any]) -> list[Key]:
    return list(getattr(result, "_fields", range(len(result))))


def _part(result: Any, key: Key) -> Any:
    if isinstance(key, int) or isinstance(result, Mapping):
        return result[key]
    return getattr(result, key)


def _shown(key: Key) -> str:
    if key == -1:
        return "the last of a list"
    return f"part {key}" if isinstance(key, int) else repr(key)


def table(result: Any, output: tuple[int, ...], layout: Layout) -> Returns | None:
    """Return the place of a table of positions in `result`, without a batch; None for none."""
    if layout.fold not in ("whole", *NUMBERS):
        return None
    batch = 0 if layout.swap is None else 1
    shapes = [tuple(1 if axis == batch else size for axis, size in enumerate(output))]
    shapes += [output[1:]] * (batch == 0)
    found = next(filter(None, (returns(result, shape, ()) for shape in shapes)), None)
    return None if found is None else replace(found, added=True)


def rows_of(result: Any, output: tuple[int, ...]) -> Returns | None:
    """Return the place of a row for every position of every sample, None for none."""
    found = returns(result, output, ())
    return None if found is None else replace(found, added=True)


def ignores_numbers(rows: Callable[[Tensor], Any], shape: Sequence[int]) -> bool:
    """Say whether `rows` gives the same for all whole numbers of `shape` (B, L)."""
    like = torch.zeros(*shape, dtype=torch.int64)
    given = [*(like + one for one in range(4)), torch.arange(like.shape[1]).repeat(len(like), 1)]
    try:
        found = [rows(one) for one in given]
    except Exception:  # code that a user wrote may raise anything
        return False
    return all(isinstance(one, Tensor) and torch.equal(one, found[0]) for one in found)
