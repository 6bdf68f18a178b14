"""Parts whose gradients are right, in closed form or by differences, unless a test spoils them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from oracle_backend import OracleBackend, OraclePart

from attentest.harness.subject import Answer, Probe, Subject
from attentest.testing.draw import Draw
from attentest_spec import Gradient, Sizes
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.parameters import tied

SIZES = Sizes(d_model=3, heads=1, d_ff=5, target_vocabulary=4)
X = np.round(np.random.default_rng(3).normal(size=(2, 3, 3)), 2)
LINEAR = {"output": "logits", "tying": "none"}

Spoil = Callable[[Gradient], Gradient]


def seeded(probe: Probe) -> Draw:
    """Return a source of numbers that are the same for every call."""
    return Draw(None, probe.subject, np.random.default_rng(11))  # type: ignore[arg-type]


def spoilt(component: str, spoil: Spoil = lambda one: one, precision: str = "float64") -> Probe:
    """Return a part whose closed-form gradient goes through `spoil`."""

    class Spoilt(OraclePart):
        def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
            return spoil(super().vjp(inputs, cotangent))

    subject = Subject(OracleBackend(choices=LINEAR, part=Spoilt))
    rng = np.random.default_rng(7)
    given = draw_parameters(component, SIZES, subject.choices, rng)
    return subject.part(component, SIZES, parameters=given, precision=precision)


def of_parameter(name: str, change: Callable[[Any], Any]) -> Spoil:
    """Change the gradient of one parameter; None leaves it out."""

    def spoil(gradient: Gradient) -> Gradient:
        changed = {**gradient.parameters, name: change(gradient.parameters[name])}
        left = {key: value for key, value in changed.items() if value is not None}
        return replace(gradient, parameters=left)

    return spoil


def of_input(change: Callable[[Any], Any]) -> Spoil:
    """Change the gradient of the first input."""
    return lambda gradient: replace(gradient, inputs=(change(gradient.inputs[0]),))


class Measured(OraclePart):
    """A part that pulls back by differences of its own, tied parameters moved together."""

    def vjp(self, inputs: Any, cotangent: Any) -> Gradient:
        twins = tied(self.component, self.sizes, self.choices)

        def slope(arrays: list[Any], place: tuple[int, ...]) -> float:
            kept, ends = arrays[0][place], []
            for moved in (kept + 1e-6, kept - 1e-6, kept):
                for array in arrays:
                    array[place] = moved
                ends.append((cotangent * Answer.of(self.answer(inputs)).output).sum())
            return float(ends[0] - ends[1]) / 2e-6

        def slopes(*arrays: Any) -> Any:
            found = [slope(list(arrays), place) for place in np.ndindex(arrays[0].shape)]
            return np.reshape(found, arrays[0].shape)

        def family(name: str) -> list[Any]:
            root = twins.get(name, name)
            return [one for key, one in self.parameters.items() if twins.get(key, key) == root]

        pulled = tuple(slopes(one) if isinstance(one, np.ndarray) else None for one in inputs)
        found = {name: slopes(*family(name)) for name in self.parameters}
        return Gradient(Answer.of(self(*inputs)).output, pulled, found)
