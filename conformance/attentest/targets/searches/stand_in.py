"""A scripted model in the interfaces that decoding functions call."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.components import squashed
from attentest_spec import Sizes
from attentest_spec.torch import Script

COLUMNS = 4
"""The number of source tokens of each sequence, which are all the same."""

_MARK = 7.0
"""The last column of a memory: no mask has it."""

_WIDTH = 5

_FIRST = 10**6
"""The source id of the first sequence: no vocabulary has it, so that nothing else is a source."""


def names(text: str) -> frozenset[str]:
    """Return the words of `text`: names without underscores and capitals."""
    return frozenset(text.split())


_LAST_MAPS = names(
    "generator projection project proj fcout fc out output outputlayer linear lmhead head "
    "classifier tologits final finallayer vocabprojection outputprojection projectionlayer "
    "linearout outlinear fcfinal predict"
)
"""The names of what turns decoder states into scores; here states are scores already."""

_TARGETS = names(
    "tgt trg target y ys tgttokens decoderinput decoderinputs decinput decoderinputids tgtids "
    "targets decodedids tgtinput"
)


class StandIn(nn.Module):
    """A model that answers out of a table, whichever of its methods is called.

    Tensors are recognised by their content: a memory by its mark, the source by its large ids, the
    target by the given tokens that it begins with. With `sequence_first`, the sequence lies on the
    first axis.
    """

    def __init__(self, sizes: Sizes, *, sequence_first: bool = False) -> None:
        """Begin without a table."""
        super().__init__()
        self.script = Script(sizes)
        self.alpha = sizes.alpha
        self.sequence_first = sequence_first
        self.begin = torch.zeros(0, 1)

    def play(self, scores: Tensor, begin: Tensor) -> Tensor:
        """Take a table of the shape (B, L, V, V) and tokens (B, P); return the source (B, S)."""
        self.script.play(scores)
        self.begin = begin
        numbers = _FIRST + torch.arange(len(scores))
        return self.turned(numbers[:, None].expand(-1, COLUMNS))

    def turned(self, values: Tensor) -> Tensor:
        """Return values of a shape (B, L, ..) with the axes as the code has them."""
        return values.transpose(0, 1) if self.sequence_first else values

    def encode(self, *given: Any, **named: Any) -> Tensor:
        """Return the memory, of the shape (B, S, D), of the source among the arguments."""
        source = self.turned(next(filter(_is_source, [*given, *named.values()])))
        memory = (source[..., None] - _FIRST).to(self.script.scores.dtype)
        wide = memory[..., :1].repeat(1, 1, _WIDTH)
        wide[..., -1] = _MARK
        return self.turned(wide)

    def decode(self, *given: Any, **named: Any) -> Tensor:
        """Return the scores, of the shape (B, T, V), of the target among the arguments."""
        every = [*given, *named.values()]
        memory = next(one for one in every if _is_memory(one))
        target = self._target(given, named)
        self._demand_order(self.turned(target), every)
        return self._scores(target, self.turned(memory)[:, :1])

    def forward(self, *given: Any, **named: Any) -> Tensor:
        """Return the scores, of the shape (B, T, V), of source and target."""
        memory = self.turned(self.encode(*given, **named))
        target = self._target(given, named)
        self._demand_order(self.turned(target), [*given, *named.values()])
        return self._scores(target, memory[:, :1])

    def _demand_order(self, tokens: Tensor, given: Iterable[Any]) -> None:
        """Refuse a mask of the target (.., T, T) that tells a token from those before it.

        What is padded may be hidden, and what an entry means is the caller's own convention.
        """
        length = tokens.shape[1]
        real = (tokens != self.script.pad).all(dim=0)
        before = torch.ones(length, length, dtype=torch.bool).tril() & real
        for mask in (one for one in given if _is_mask(one, length)):
            rows = mask.reshape(-1, length, length)[:, before]
            if not bool((rows == rows[:, :1]).all()):
                raise ValueError(
                    "a mask of the target that hides a token from itself or later ones"
                )

    def _scores(self, target: Tensor, memory: Tensor) -> Tensor:
        tokens = self.turned(target)
        if len(tokens) != len(memory):
            raise ValueError(f"a batch of {len(tokens)} targets, and {len(memory)} sources")
        return self.turned(self.script.answer(tokens.long(), memory))

    def _target(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> Tensor:
        by_name = [value for name, value in named.items() if squashed(name) in _TARGETS]
        tokens = [one for one in (*by_name, *given, *named.values()) if _is_tokens(one)]
        found = [one for one in tokens if not _is_source(one) and self._begins(one)]
        if not found:
            raise ValueError("no argument begins with the given tokens")
        target: Tensor = found[0]
        return target

    def _begins(self, tokens: Tensor) -> bool:
        """Say whether every sequence begins with the first token of one that was given."""
        return bool(torch.isin(self.turned(tokens)[:, 0], self.begin[:, 0]).all())

    def __getattr__(self, name: str) -> Any:
        """Return what code asks of models besides: a last map, a maker of masks, a pad id."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            own = squashed(name)
            if own in _LAST_MAPS:
                return _same
            if "mask" in own:
                return lambda *given, **named: torch.ones(1, 1, dtype=torch.bool)
            if "pad" in own:
                return self.script.source_pad if "src" in own else self.script.pad
            if own == "device":
                return torch.device("cpu")
            raise


def arguments_of(model: StandIn, source: Tensor, begin: Tensor, length: int) -> dict[str, Any]:
    """Return the value of every role of a function that decodes."""
    script = model.script
    return {
        "model": model,
        "source": source,
        "source_mask": torch.ones(len(begin), 1, source.shape[1], dtype=torch.bool),
        "length": length,
        "start": int(begin[0, 0]),
        "begin": model.turned(begin),
        "end": script.end,
        "pad": script.pad,
        "device": torch.device("cpu"),
    }


def _same(x: Tensor) -> Tensor:
    return x


def _is_tokens(value: Any) -> bool:
    whole = (torch.int64, torch.int32)
    return isinstance(value, Tensor) and value.ndim == 2 and value.dtype in whole


def _is_mask(value: Any, length: int) -> bool:
    """Say whether `value` may be a mask among `length` tokens, of which there are several."""
    square = isinstance(value, Tensor) and value.shape[-2:] == (length, length)
    return square and length > 1 and not _is_memory(value) and not _is_tokens(value)


def _is_source(value: Any) -> bool:
    return _is_tokens(value) and bool((value >= _FIRST).all())


def _is_memory(value: Any) -> bool:
    return (
        isinstance(value, Tensor)
        and value.ndim == 3
        and value.shape[-1] == _WIDTH
        and bool((value[..., -1] == _MARK).all())
    )


def globals_named(function: Callable[..., Any], names: frozenset[str]) -> Iterator[str]:
    """Yield the globals that `function` reads and whose squashed names are among `names`."""
    known = getattr(function, "__globals__", {})
    for name in getattr(getattr(function, "__code__", None), "co_names", ()):
        if name in known and squashed(name) in names:
            yield name
