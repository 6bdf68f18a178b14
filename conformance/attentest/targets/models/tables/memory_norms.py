"""Norms of the memory in the layers of a decoder: they are left out, and the rest is judged.

The class and the function need nothing else of the suite: written adapters contain their source.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attentest.analysis.lines.torch_recording import line_of_caller
from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Reading, Uncovered
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.trials import Building
from attentest.targets.nearest import shown_line


class MemoryAsItIs(nn.Module):
    """The `norm` of a layer, which returns what it gets in those of its `turns` in a call."""

    def __init__(self, norm: nn.Module, turns: Sequence[int]) -> None:
        super().__init__()
        self.norm, self.turns, self.turn = norm, turns, 0

    def restart(self, *_: object) -> None:
        """Begin with the first turn: the layer is called."""
        self.turn = 0

    def forward(self, rows: Tensor, *rest: Any, **named: Any) -> Any:
        """Return the normed rows, or the rows of the memory."""
        self.turn += 1
        return rows if self.turn in self.turns else self.norm(rows, *rest, **named)


def with_plain_memory(
    model: nn.Module, norms: Sequence[tuple[str, str, int, Sequence[int]]]
) -> nn.Module:
    """Return `model` without the `norms` of its memory.

    Each is a list of layers, the norm in each of them, how often it is called, and in which calls.
    """
    for layers, norm, times, turns in norms:
        above, _, own = norm.rpartition(".")
        for layer in model.get_submodule(layers).children():
            if len(turns) == times:
                setattr(layer.get_submodule(above), own, nn.Identity())
                continue
            made = MemoryAsItIs(layer.get_submodule(norm), turns)
            setattr(layer.get_submodule(above), own, made)
            layer.register_forward_pre_hook(made.restart)
    return model


PLAIN_MEMORY_SOURCE = "\n".join(
    [
        *("from collections.abc import Sequence", "from typing import Any", ""),
        *("from torch import Tensor, nn", "", ""),
        *(inspect.getsource(MemoryAsItIs), "", inspect.getsource(with_plain_memory)),
    ]
)
"""The class and the function as code, for a reproduction or a written adapter."""

_SAID = (
    "assumed that the layers of the decoder are meant to norm the memory once more, by {}{}, which "
    "this spec has no place for: these norms are left out, and NOT compared. Where they are not "
    "meant, they are a mistake"
)
_QUESTION = (
    "{} norms its memory in the layers of its decoder, by {}{}: this spec has a memory that its "
    "encoder has normed, or none has, and without these norms its numbers are no design's. Where "
    "they are not meant, they are a mistake, and --anyway (in Python: anyway=True) judges it."
)


def without_memory_norms(built: Building, inferred: Inferred, reading: Reading) -> Building:
    """Return `built` with a memory that no layer of the decoder norms.

    It is returned as it is where none does.
    """
    if reading.strict or reading.anyway or built.equal:
        return built
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    watched = _Watched(probe.model)
    call, (source, target) = inferred.call.compiled(), probe.tokens
    try:
        probe.called(call, source, target)
        before = watched.taken()
        probe.called(call, source, target.flip(0))
        after = watched.taken()
    finally:
        watched.close()
    found = watched.of_memory(before, after)
    if not found:
        return built
    layers, norm, *_ = found[0]
    first = f"{layers}.0.{norm}"
    at = watched.lines.get(f"{first}:{found[0][3][0]}")
    said = _SAID.format(first, f" at {shown_line(at)}" if at else "")
    return replace(
        built,
        expression=f"{with_plain_memory.__name__}({built.expression}, {found})",
        space={**built.space, with_plain_memory.__name__: with_plain_memory},
        said=(*built.said, said),
        doubts=(*built.doubts, said),
    )


def question_of_memory(built: Building, name: str) -> Uncovered | None:
    """Return the question about norms of the memory that were left out in vain, None for none."""
    if f"{with_plain_memory.__name__}(" not in built.expression:
        return None
    start = _SAID.partition("{}")[0]
    said = next(one for one in built.doubts if one.startswith(start)).removeprefix(start)
    return Uncovered(_QUESTION.format(name, said.partition(", which")[0], ""))


class _Watched:
    """Keeps for each norm of a layer what it gets, in the order of its calls."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.rows: dict[str, list[Tensor]] = {}
        self.layers: dict[str, str] = {}
        self.lines: dict[str, Any] = {}
        self.handles: list[Any] = []
        for path, module in model.named_modules():
            own = is_norm(module) and any(True for _ in module.parameters(recurse=False))
            if own and (layer := _layer_around(path)):
                self.layers[path] = layer
                note = partial(self._note, path)
                self.handles.append(module.register_forward_pre_hook(note))

    def close(self) -> None:
        """Remove what watches the model."""
        for one in self.handles:
            one.remove()

    def taken(self) -> dict[str, list[Tensor]]:
        """Return what the norms got since this was asked for."""
        found, self.rows = self.rows, {}
        return found

    def of_memory(
        self, before: dict[str, list[Tensor]], after: dict[str, list[Tensor]]
    ) -> list[tuple[str, str, int, tuple[int, ...]]]:
        """Return the norms of decoder layers that get the memory, and in which calls.

        A memory is what stays as it is `before` and `after` the target is changed, in a layer in
        which other rows do not.
        """
        moved = {
            path: [not _same(*pair) for pair in zip(rows, after.get(path, []), strict=False)]
            for path, rows in before.items()
        }
        decoders = {self.layers[path] for path, each in moved.items() if any(each)}
        found: dict[tuple[str, str, int, tuple[int, ...]], set[str]] = {}
        for path, each in moved.items():
            if self.layers[path] in decoders and not all(each):
                layers, _, number = self.layers[path].rpartition(".")
                turns = tuple(n for n, one in enumerate(each, 1) if not one)
                inner = path.removeprefix(f"{self.layers[path]}.")
                found.setdefault((layers, inner, len(each), turns), set()).add(number)
        every = {
            layers: {name for name, _ in self.model.get_submodule(layers).named_children()}
            for layers, *_ in found
        }
        return [one for one, numbers in found.items() if one[0] and numbers == every[one[0]]]

    def _note(self, path: str, _: nn.Module, inputs: tuple[object, ...]) -> None:
        rows = inputs[0] if inputs else None
        if isinstance(rows, Tensor):
            self.rows.setdefault(path, []).append(rows.clone())
            number = len(self.rows[path])
            if at := line_of_caller():
                self.lines.setdefault(f"{path}:{number}", at)


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def _layer_around(path: str) -> str:
    """Return the outermost module in a list that holds the module of `path`, "" for none."""
    parts = path.split(".")
    number = next((n for n, one in enumerate(parts) if one.isdigit()), None)
    return "" if number is None else ".".join(parts[: number + 1])
