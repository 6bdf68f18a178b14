"""The layouts of tensors in code that has another one than the contract."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.computed_values import PLACES
from attentest.targets.adapt.names import words

NUMBERS = ("ids", "places", "shape", "length")
"""The inputs that a call of a positional encoding may get in the place of vectors."""


@dataclass(frozen=True)
class Layout:
    """One way to lay out what the contract calls (B, H, L, E), (B, L, D) or (B, L).

    `fold` says what a call gets: the whole tensor, one with the heads in the batch, or one matrix
    alone at a time, "ids", token ids (B, L) in the place of (B, L, D): positions depend on
    their number alone, "places", the positions themselves, the "shape" (B, L) of the ids, or their
    "length" L; `swap` are two axes that change places after that, and `column` is the place of an
    axis of length 1 that is put in at last: images are called with one column or row of pixels, or
    with as many equal ones as `columns`.
    """

    words: str
    fold: Literal["whole", "heads", "alone", "ids", "places", "shape", "length"] = "whole"
    swap: tuple[int, int] | None = None
    column: int | None = None
    columns: int = 1

    def enter(self, x: Tensor) -> Sequence[Tensor]:
        """Return what each call gets of the contract's `x`."""
        turned = [one if self.swap is None else one.transpose(*self.swap) for one in self.split(x)]
        if self.column is None:
            return turned
        return [torch.stack([one] * self.columns, self.column) for one in turned]

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Return `x` as each call gets it, before axes change places: for masks and weights."""
        return split(x, self.fold)

    def leave(self, outputs: Sequence[Tensor], like: Tensor) -> Tensor:
        """Return the contract's tensor from what each call gave; `like` has its leading axes."""
        if self.column is not None:
            outputs = [one.squeeze(self.column) for one in outputs]
        turned = [one if self.swap is None else one.transpose(*self.swap) for one in outputs]
        return self.join(turned, like)

    def join(self, parts: Sequence[Tensor], like: Tensor) -> Tensor:
        """Undo :meth:`split`."""
        if self.fold in ("whole", *NUMBERS):
            return parts[0]
        whole = parts[0] if self.fold == "heads" else torch.stack(list(parts))
        return whole.view(*like.shape[:2], *whole.shape[1:]) if like.ndim == 4 else whole

    def code_entering(self, x: str, ndim: int) -> str:
        """Return an expression for what call `i` gets of the contract's `x`; see :meth:`enter`."""
        heads = ".flatten(0, 1)" if ndim > 3 or self.fold == "heads" else ""
        if self.fold == "ids":
            return f"torch.ones({x}.shape[:2], dtype=torch.int64, device={x}.device)"
        if self.fold == "shape":
            return f"{x}.shape[:2]"
        if self.fold == "length":
            return f"{x}.shape[1]"
        if self.fold == "places":
            return f"torch.arange({x}.shape[1], device={x}.device).expand({x}.shape[:2])"
        split = {"heads": heads, "alone": f"{heads}[i]"}.get(self.fold, "")
        return f"{x}{split}{self._code_of_swap()}{self._code_of_column('unsqueeze')}"

    def code_leaving(self, outputs: str, like: Tensor, *, swapped: bool = True) -> str:
        """Return an expression for the contract's tensor; see :meth:`leave` and :meth:`join`.

        `outputs` is the result of the one call, or the list of the results of all calls.
        """
        turn = self.code_of_turn() if swapped else ""
        if self.fold == "alone":
            outputs = f"torch.stack({outputs})"
        whole = self.fold in ("heads", "alone") and like.ndim == 4
        return f"{outputs}{turn}" + f".unflatten(0, {tuple(like.shape[:2])})" * whole

    def code_of_turn(self) -> str:
        """Return the text that gives an output in front of it the axes of the contract."""
        return f"{self._code_of_column('squeeze')}{self._code_of_swap()}"

    def _code_of_swap(self) -> str:
        return "" if self.swap is None else f".transpose{self.swap}"

    def _code_of_column(self, method: str) -> str:
        return "" if self.column is None else f".{method}({self.column})"


def split(x: Tensor, fold: str) -> Sequence[Tensor]:
    """Return `x` as each call gets it: whole, with the heads in the batch, or matrix by matrix."""
    match fold:
        case "heads":
            return [x.flatten(0, 1)]
        case "alone":
            return x.flatten(0, -3).unbind(0) if x.ndim > 3 else x.unbind(0)
        case "ids":
            return [torch.ones(x.shape[:2], dtype=torch.int64, device=x.device)]
        case "shape":
            return [x.shape[:2]]  # type: ignore[list-item]  # a shape alone
        case "length":
            return [x.shape[1]]  # type: ignore[list-item]  # a number alone
        case "places":
            return [torch.arange(x.shape[1], device=x.device).expand(x.shape[:2])]
        case _:
            return [x]


FOUR = (
    Layout("(B, H, L, E)"),
    Layout("(B, L, H, E), heads behind the sequence", swap=(1, 2)),
    Layout("(B, L, E), without heads: each head is a sample", "heads"),
    Layout("(L, B, E), sequence first and without heads", "heads", swap=(0, 1)),
    Layout("(L, E), one head of one sample at a time", "alone"),
)
"""The orders of the four axes of attention, the contract's own first."""

THREE = (
    Layout("(B, L, D), batch first"),
    Layout("(L, B, D), sequence first", swap=(0, 1)),
    Layout("(L, D), one sample at a time", "alone"),
)
"""The orders of the axes of every other component, the contract's own first."""

CHANNELS_FIRST = (
    Layout("(B, D, L), channels first", swap=(1, 2)),
    Layout("(B, D, H, W), channels first, with one column", swap=(1, 2), column=3),
)
"""The orders of the axes of what is written for series and images with their channels first."""

GRID = Layout("(B, H, W, D), with one row", column=1)
"""The axes of attention, networks and layers of images, or of series of several features."""

OF_IDS = Layout("(B, L), token ids", "ids")
"""The inputs of a positional encoding that looks at the length of its input alone."""

OF_PLACES = Layout("(B, L), the positions themselves", "places")
"""The inputs of a positional encoding that is given positions by the name of its argument."""

OF_SHAPE = Layout("(B, L) as a shape", "shape")
"""The input of a positional encoding that is given the shape of the token ids alone."""

OF_LENGTH = Layout("L, the number of positions", "length")
"""The input of a positional encoding that is given the number of positions by its argument."""

_LENGTHS = words("length seqlen seqlength sequencelength numpositions npositions")
_SHAPES = words("inputidsshape inputshape idsshape inputsshape")


def layouts(component: str, argument: str = "") -> Sequence[Layout]:
    """Return the layouts in which `component` is written, whose first `argument` has a name."""
    own = squashed(argument)
    named = ((OF_PLACES, PLACES), (OF_SHAPE, _SHAPES), (OF_LENGTH, _LENGTHS))
    numbers = [next((one for one, known in named if own in known), OF_IDS)]
    numbers = numbers if component == "positional_encoding" else []
    channels: Sequence[Layout] = CHANNELS_FIRST if component in (*_NORMS, *_SUBLAYERS) else ()
    channels = CHANNELS_FIRST[:1] if component == "positional_encoding" else channels
    grid = [GRID] * (component in (*_SUBLAYERS, "encoder_layer"))
    return FOUR if component == "attention" else [*THREE, *numbers, *channels, *grid]


_NORMS = ("layer_norm", "rms_norm")
_SUBLAYERS = ("feed_forward", "multi_head_attention")


def sequence_first(layout: Layout) -> bool:
    """Say whether the sequence is the first axis and a batch is the second."""
    return layout.swap == (0, 1)


_BATCH_FIRST = ("batch", "b,l", "b,t", "b,s", "b,n", "n,l")
_SEQUENCE_FIRST = ("seq", "l,b", "t,b", "s,b", "l,n", "s,n")
_SPOKEN = r"\b(time|seq\w*|len\w*) x batch", r"\bbatch x (time|seq|len)"
_BRACKETS = re.compile(r"[(\[]([^()\[\]]*)[)\]]")


def documented_layout(words: str) -> str:
    """Return the layout that documentation states, "" where it states none or both.

    Shapes of two axes are those of ids and masks, and say nothing of sequences of vectors.
    """
    text = squashed("".join(words.split()))
    shapes, end = [], 0
    for found in _BRACKETS.finditer(text):
        if found[1].count(",") > 1 and "mask" not in text[end : found.start()][-_NEAR:]:
            shapes.append(found[1])
        end = found.end()
    second, first = (re.search(one, words.lower()) is not None for one in _SPOKEN)
    first |= any(one.startswith(_BATCH_FIRST) for one in shapes)
    second |= any(one.startswith(_SEQUENCE_FIRST) for one in shapes)
    if first == second:
        return ""
    return "batch-first" if first else "sequence-first"


_NEAR = 24
"""Letters before a shape in which the name of its argument is looked for."""


Inputs = Mapping[str, Any]
"""The inputs of a call by name."""


def ignores_input(call: Callable[[Inputs], object], given: Inputs) -> bool:
    """Say whether the values of its input change nothing: what is computed is a table."""
    before, after = call(given), call({name: value + 1.0 for name, value in given.items()})
    return isinstance(before, Tensor) and isinstance(after, Tensor) and torch.equal(before, after)


def adds_by_row(call: Callable[[Inputs], Tensor | str], given: Inputs) -> bool:
    """Say whether what is added to zeros follows the first axis and not the second."""
    output = call({name: torch.zeros_like(one) for name, one in given.items()})
    if isinstance(output, str) or output.ndim != 3:
        return False
    return bool((output == output[:, :1]).all()) and not bool((output == output[:1]).all())


def by_reason(refusals: Iterable[str]) -> str:
    """Return the layouts in which a call failed, those that failed alike together."""
    found: dict[str, list[str]] = {}
    for one in refusals:
        words, *reason = _REASON.split(one, maxsplit=1)
        found.setdefault("".join(reason), []).append(words)
    return "; ".join(f"{' and '.join(words)}: {reason}" for reason, words in found.items())


_REASON = re.compile(r": (?=[A-Z]\w*\b|it |its )")
"""The separator between the words of a layout and an exception, or what is said of a result."""
