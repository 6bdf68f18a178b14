"""The state that the steps of a reading share: the trace, the parameters, and what was reached."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from time import process_time
from typing import Any

import numpy as np

from attentest.analysis.lines.recording import Place as Line
from attentest.targets.language_models.numbers.experts import Mixture
from attentest.targets.language_models.numbers.mistakes import Mistake
from attentest.targets.language_models.numbers.places import Parameters, View
from attentest.targets.language_models.numbers.tracing import Trace
from attentest_spec import Place, Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Floats

Search = Callable[[], Iterable[Any]]

SECONDS = 20.0
"""Time for which the numbers may be asked, in seconds of the processor."""


@dataclass
class Reader:
    """One reading of a traced call.

    `constants` are the numbers that the code holds, `declared` the choices that the user says,
    `widths` what the inner width of the network may be. `reached` is the furthest step that was
    tried, by its place in the model, with what was looked for; `suspected` is a mistake that gives
    the numbers there, and `begun` the line where they begin, if that is known. `mistaken` is one
    that the numbers are read with, `idle` are the parameters that the output does not depend on.
    `seen` is what :meth:`once` found. `mixtures` are calls of mixtures of experts, whose numbers
    are taken as they are. `by_layer` are the beginnings of the choices that layers may differ in.
    """

    trace: Trace
    parameters: Parameters
    sizes: Sizes
    constants: list[float]
    declared: Mapping[str, Value]
    widths: tuple[int, ...]
    reached: tuple[int, str] = (0, "the embeddings")
    suspected: Mistake | None = None
    begun: Line | None = None
    mistaken: Mistake | None = None
    idle: Collection[str] = ()
    began: float = field(default_factory=process_time)
    seen: dict[Any, list[Any]] = field(default_factory=dict)
    mixtures: Sequence[Mixture] = ()
    by_layer: tuple[str, ...] = ()
    _matrices: dict[tuple[int, int], list[View]] = field(default_factory=dict)
    _rows: dict[int, list[View]] = field(default_factory=dict)

    def holds(self, values: Floats) -> bool:
        """Say whether the call computes these numbers somewhere."""
        return self.trace.holds(values)

    def holds_heads(self, values: Floats) -> bool:
        """Say whether the call computes those of heads (B, H, T, E), together or each apart."""
        if self.holds(values):
            return True
        return self.parameters.have_heads and all(map(self.holds, values.swapaxes(0, 1)))

    def once(self, kind: str, x: Floats, known: Mapping[str, Value], search: Search) -> list[Any]:
        """Return what `search` finds of x under the choices `known`, which is asked for often."""
        key = kind, x.tobytes(), tuple(sorted(known.items()))
        if key not in self.seen:
            self.seen[key] = list(search())
        return self.seen[key]

    def holds_map(self, place: Place, values: Floats) -> bool:
        """Say whether the call computes what a linear map at `place` gives, or each head's part."""
        parts = self.sizes.heads if "*" in place.name else 1
        if parts > 1 and len(place.names(self.parameters.own)) == self.sizes.kv_heads:
            parts = self.sizes.kv_heads
        return all(map(self.holds, np.split(values, parts, axis=-1)))

    def looks_for(self, place: int, what: str) -> None:
        """Remember that `what` is looked for, the step number `place` of the model."""
        if place > self.reached[0]:
            self.reached = place, what

    @property
    def in_second_layer(self) -> bool:
        """Whether what is missing is in the attention of the layer of the number 1."""
        return "layers.1.self_attention" in self.reached[1]

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return process_time() - self.began > SECONDS

    def matrices(self, rows: int, columns: int) -> list[View]:
        """Return the views of parameters as matrices (rows, columns)."""
        key = rows, columns
        if key not in self._matrices:
            self._matrices[key] = list(self.parameters.matrices(rows, columns))
        return self._matrices[key]

    def rows(self, size: int) -> list[View]:
        """Return the views of parameters with `size` numbers."""
        if size not in self._rows:
            self._rows[size] = list(self.parameters.rows(size))
        return self._rows[size]
