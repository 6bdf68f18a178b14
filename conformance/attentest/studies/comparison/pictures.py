"""Pictures of a backend: its masks, its attention and its positions on one small example."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.inputs import weights
from attentest_spec import PAPER, Backend, Choices, Sizes
from attentest_spec.contract import Input
from attentest_spec.masks import padding_mask, target_mask
from attentest_spec.setting import Array, Floats, Setting

ATTENTION, MASK, POSITIONS = "attention", "mask", "positions"

PICTURED = Example(
    Sizes(d_model=12, heads=2, layers=1, source_vocabulary=11, target_vocabulary=11),
    source=((5, 3, 8, 2, 0, 0),),
    target=((1, 6, 2, 9, 0),),
)
"""One sentence a side, with pads; no sentence is longer than a head is wide."""


@dataclass(frozen=True)
class Picture:
    """A matrix that a backend computed: a `kind`, a title, and a name for every row and column.

    The same tokens and canonical weights go into the pictures of all backends. Numbers have four
    digits; None is one that is not finite.
    """

    backend: str
    kind: str
    title: str
    values: tuple[tuple[float | None, ...], ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Picture":
        """Read a picture back from plain values."""
        lists = {name: tuple(plain[name]) for name in ("rows", "columns")}
        return cls(**{**plain, **lists, "values": tuple(map(tuple, plain["values"]))})


def pictures(name: str, backend: Backend, choices: Choices) -> tuple[Picture, ...]:
    """Return the pictures of `backend`, called `name`, of the components that it provides.

    What it cannot compute, or computes in another shape, is left out.
    """
    asked = _Asked(name, backend, choices, PICTURED.fitted({name: backend.limits}))
    found: list[Picture] = []
    for look in (asked.padding, asked.causal, asked.target):
        found += _seen(look())
    for side in ("source", "target"):
        found += _seen(asked.attention(side))
    return (*found, *_seen(asked.nothing()), *_seen(asked.positions()))


def _seen(drawn: Iterator[Picture]) -> Iterable[Picture]:
    """Return what could be `drawn`; `attentest run` says what is wrong with the rest."""
    found: list[Picture] = []
    with suppress(Absent, BackendError, Violation):
        found += drawn
    return found


class _Asked:
    """A backend that is asked for its pictures."""

    def __init__(self, name: str, backend: Backend, choices: Choices, example: Example) -> None:
        self._name = name
        self._subject = Subject(backend, choices=choices)
        self._example = example
        self._tokens = {side: np.array(getattr(example, side)) for side in ("source", "target")}

    def padding(self) -> Iterator[Picture]:
        tokens, names = self._tokens["source"], self._names("source")
        shape = (1, 1, 1, len(names))
        mask = self._output("padding_mask", shape, tokens, self._example.sizes.source_pad)
        yield self._drawn(MASK, "padding mask of the source", mask[0, 0], ["every query"], names)

    def causal(self) -> Iterator[Picture]:
        numbers = _numbers(self._tokens["target"].shape[1])
        mask = self._output("causal_mask", (1, 1, *[len(numbers)] * 2), len(numbers))
        yield self._drawn(MASK, "causal mask", mask[0, 0], numbers, numbers)

    def target(self) -> Iterator[Picture]:
        tokens, names = self._tokens["target"], self._names("target")
        shape = (1, 1, len(names), len(names))
        mask = self._output("target_mask", shape, tokens, self._example.sizes.target_pad)
        yield self._drawn(MASK, "target mask", mask[0, 0], names, names)

    def attention(self, side: str) -> Iterator[Picture]:
        """Yield the weights of every head of the first layer over the sentence of `side`."""
        names, mask = self._names(side), self._hiding(side)
        for number, head in enumerate(self._weights(side, mask)[0], start=1):
            yield self._drawn(ATTENTION, f"{side} attention, head {number}", head, names, names)

    def nothing(self) -> Iterator[Picture]:
        """Yield the weights of a query from which all keys are hidden."""
        names, mask = self._names("source"), np.zeros_like(self._hiding("source"))
        row = self._weights("source", mask)[0, 0, :1]
        yield self._drawn(ATTENTION, "attention where every key is hidden", row, names[:1], names)

    def positions(self) -> Iterator[Picture]:
        """Yield what is added to zeros, position by position."""
        shape = (1, self._example.sizes.max_length, self._example.sizes.d_model)
        added = self._output("positional_encoding", shape, np.zeros(shape))
        yield self._drawn(POSITIONS, "positions", added[0], *map(_numbers, shape[1:]))

    def _weights(self, side: str, mask: Array) -> Array:
        """Return the weights (1, H, L, L) that attention uses.

        They are what it makes of values that are unit vectors, whether it returns them or not.
        """
        query, key = (_projected(self._example, side, name) for name in ("query", "key"))
        units = np.broadcast_to(np.eye(*key.shape[2:]), key.shape)
        output = self._output("attention", key.shape, query, key, units, mask)
        return output[..., : key.shape[2]]

    def _hiding(self, side: str) -> Array:
        """Return the mask that hides pads, and in the target what comes later."""
        kinds, tokens = self._example.masks, self._tokens[side]
        if side == "target" and "per-sample" in kinds:
            return target_mask(Setting(), tokens, self._example.sizes.target_pad)
        if side == "source" and "padding" in kinds:
            return padding_mask(Setting(), tokens, self._example.sizes.source_pad)
        raise Absent(f"{self._name} takes no such mask")

    def _output(self, component: str, shape: tuple[int, ...], *inputs: Input) -> Array:
        """Return what `component` computes, as numbers in `shape`."""
        held = weights(self._example, component, self._subject.choices)
        probe = self._subject.part(component, self._example.sizes, parameters=held or None)
        output = probe.output(*inputs)
        if output.shape != shape or output.dtype.kind not in "bfiu":
            raise Violation(f"the {component} has the shape {output.shape} and {output.dtype}")
        return output.astype(float)

    def _names(self, side: str) -> list[str]:
        pad = getattr(self._example.sizes, f"{side}_pad")
        return ["pad" if token == pad else str(token) for token in self._tokens[side][0]]

    def _drawn(
        self, kind: str, title: str, values: Array, rows: Sequence[str], columns: Sequence[str]
    ) -> Picture:
        told = tuple(tuple(map(_short, row)) for row in values.tolist())
        return Picture(self._name, kind, title, told, tuple(rows), tuple(columns))


def _numbers(many: int) -> list[str]:
    return [str(place) for place in range(many)]


def _projected(example: Example, side: str, name: str) -> Floats:
    """Return queries or keys (1, H, L, E) of the first layer, without positions."""
    held = weights(example, "model", PAPER)
    stack = "encoder" if side == "source" else "decoder"
    embedded = held[f"{side}_embedding.weight"][np.array(getattr(example, side))]
    weight = held[f"{stack}.layers.0.self_attention.{name}.weight"]
    rows = np.sqrt(example.sizes.d_model) * embedded @ weight.T
    heads: Floats = rows.reshape(*rows.shape[:2], example.sizes.heads, -1).swapaxes(1, 2)
    return heads


def _short(value: float) -> float | None:
    return float(f"{value:.4g}") if np.isfinite(value) else None
