"""A formula as a graph of named steps, each with its value, its inputs and ways to get it wrong."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attentest_spec import Choices, Setting, Sizes
from attentest_spec.setting import Array

Compute = Callable[..., Any]
"""A function of the values of a step's inputs, in their order."""


@dataclass(frozen=True)
class Mistake:
    """Another way to compute a step from the same inputs, in words of the formula."""

    text: str
    compute: Compute


@dataclass(eq=False)
class Step:
    """One value of the formula.

    `axes` has one letter for each of its axes: B batch, H heads, E head width, L, Q and K
    positions, D and other letters for columns. `part` is the innermost named part that it belongs
    to. An `optional` step is one that some code computes on its way and the formula does not need.
    A `filled` step is minus infinity, or far below all others, where it is masked.
    """

    name: str
    part: str
    text: str
    axes: str
    value: Array
    number: int
    inputs: tuple["Step", ...] = ()
    compute: Compute | None = None
    mistakes: Sequence[Mistake] = ()
    optional: bool = False
    filled: bool = False
    consumers: list["Step"] = field(default_factory=list)

    @property
    def is_leaf(self) -> bool:
        """Whether it is an input, a parameter or a constant."""
        return self.compute is None

    def without(self) -> Iterator[Mistake]:
        """Yield its mistakes, the last of them that it is left out, where that fits."""
        yield from self.mistakes
        if self.inputs and self.inputs[0].value.shape == self.value.shape and not self.optional:
            yield Mistake(f"{self.inputs[0].words}, unchanged", lambda *inputs: inputs[0])

    @property
    def words(self) -> str:
        """The step in a sentence: the name of an input, another one with the part it belongs to."""
        if self.is_leaf:
            return self.text
        own = self.name.removeprefix(f"{self.part}.")
        kind = f"{own} row" if own in _ROWS else own
        return f"the {kind} of {self.part}" if self.part else f"the {kind}"


_ROWS = ("centred", "normalised", "scaled")
"""The names of steps that say how a row is changed."""


class Formula:
    """The graph of a component's formula on given inputs and parameters, in order of computing.

    The numbers of choices that are not `declared` are in no text: they were measured on the code.
    """

    def __init__(
        self,
        sizes: Sizes,
        choices: Choices,
        parameters: Mapping[str, Array],
        declared: Collection[str] = (),
    ) -> None:
        self.sizes = sizes
        self.declared = declared
        self.choices = choices
        self.parameters = parameters
        self.steps: list[Step] = []
        self._leaves: dict[str, Step] = {}

    @property
    def setting(self) -> Setting:
        """The setting of the oracles that some steps are computed by."""
        return Setting(self.sizes, self.choices, self.parameters)

    @property
    def output(self) -> Step:
        """The last step that is no optional one."""
        return next(step for step in reversed(self.steps) if not step.optional)

    def leaf(self, name: str, value: Any, axes: str, text: str = "") -> Step:
        """Add an input or a constant."""
        step = Step(name, "", text or name, axes, np.asarray(value), len(self.steps))
        self.steps.append(step)
        return step

    def parameter(self, name: str, axes: str) -> Step | None:
        """Return the parameter `name`, one step however often it is asked for; None for none."""
        if name not in self.parameters:
            return None
        if name not in self._leaves:
            self._leaves[name] = self.leaf(name, self.parameters[name], axes)
        return self._leaves[name]

    def step(
        self,
        part: str,
        name: str,
        compute: Compute,
        *inputs: Step,
        text: str,
        axes: str,
        mistakes: Sequence[Mistake] = (),
        optional: bool = False,
        filled: bool = False,
    ) -> Step:
        """Add a step of `part` that `compute` makes from `inputs`."""
        with np.errstate(all="ignore"):
            value = np.asarray(compute(*(one.value for one in inputs)))
        full = f"{part}.{name}" if part else name
        made = Step(
            full,
            part,
            text,
            axes,
            value,
            len(self.steps),
            inputs,
            compute,
            mistakes,
            optional,
            filled,
        )
        self.steps.append(made)
        if not optional:
            for one in inputs:
                one.consumers.append(made)
        return made


def evaluated(step: Step, put: Mapping[int, Array], chain: Sequence[Step]) -> Array | None:
    """Return the value of `step` with the values `put` in the place of others."""
    values = dict(put)
    for one in chain:
        changed = any(other.number in values for other in one.inputs)
        if one.number in put or not changed or one.compute is None:
            continue
        inputs = (values.get(other.number, other.value) for other in one.inputs)
        try:
            with np.errstate(all="ignore"):
                values[one.number] = np.asarray(one.compute(*inputs))
        except (ValueError, IndexError, TypeError):
            return None
    return values.get(step.number)
