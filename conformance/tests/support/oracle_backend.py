"""A backend that answers with the oracles, bent where a test of the helpers wants it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest_spec import Gradient, Limits, Setting, Sizes
from attentest_spec.choices import Choices, Value
from attentest_spec.components import COMPONENTS
from attentest_spec.contract import CAPABILITIES, Input
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.parameters import draw, shapes
from attentest_spec.precision import dtype
from attentest_spec.setting import Array

Bend = Callable[[Any, "OraclePart"], Any]
"""Takes the oracle's answer and the part that gives it; returns what the backend answers."""


class OracleBackend:
    """Provides every component in every precision, computed in float64 inside."""

    name = "oracle"
    title = "the oracles themselves"

    def __init__(
        self,
        bend: Bend = lambda answer, part: answer,
        *,
        choices: Mapping[str, Value] | None = None,
        limits: Limits | None = None,
        components: Collection[str] = tuple(COMPONENTS),
        part: type["OraclePart"] | None = None,
    ) -> None:
        self.bend = bend
        self.choices = dict(choices or {})
        self.limits = limits or Limits()
        self.components = components
        self.made = part or OraclePart

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> "OraclePart":
        return self.made(self, component, sizes, precision)


class OraclePart:
    """One oracle with its parameters, which start at random values."""

    capabilities = CAPABILITIES

    def __init__(
        self, backend: OracleBackend, component: str, sizes: Sizes, precision: str
    ) -> None:
        self.backend, self.component, self.sizes = backend, component, sizes
        self.precision, self.training, self.calls = precision, False, 0
        self.inputs: tuple[Input, ...] = ()
        self.choices = Choices.of(backend.choices)
        rng = np.random.default_rng(0)
        self.parameters: dict[str, Array] = dict(draw(component, sizes, self.choices, rng))

    def answer(self, inputs: tuple[Input, ...], method: str = "") -> Any:
        given = {name: values.astype(np.float64) for name, values in self.parameters.items()}
        oracle = METHODS[method] if method else ORACLES[self.component]
        wide = (one.astype(np.float64) if floating(one) else one for one in inputs)
        return oracle(Setting(self.sizes, self.choices, given), *wide)

    def __call__(self, *inputs: Input, method: str = "") -> Any:
        self.calls, self.inputs = self.calls + 1, inputs
        answer = self.backend.bend(self.answer(inputs, method), self)
        if isinstance(answer, tuple):
            return tuple(self.cast(one) for one in answer)
        return self.cast(answer)

    def cast(self, array: Array) -> Array:
        return array if array.dtype.kind in "bi" else array.astype(dtype(self.precision))

    def load(self, parameters: Mapping[str, Array]) -> None:
        self.parameters = {name: np.array(values) for name, values in parameters.items()}

    def export(self) -> dict[str, Array]:
        return {name: np.array(values) for name, values in self.parameters.items()}

    def train(self) -> None:
        self.training = True

    def eval(self) -> None:
        self.training = False

    def inventory(self) -> Mapping[str, Mapping[str, Any]]:
        table = shapes(self.component, self.sizes, self.choices)
        return {"parameters": {name: {"shape": shape} for name, shape in table.items()}}

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull back through the layer norm and the linear maps, in closed form."""
        pulled, parameters = PULLS[self.component](self, *inputs, cotangent)
        return Gradient(self(*inputs), pulled, parameters)


def _of_generator(part: OraclePart, x: Any, cotangent: Array) -> Any:
    """Differentiate x W^T + b, the generator that returns logits."""
    flat, pulled = x.reshape(-1, x.shape[-1]), cotangent.reshape(-1, cotangent.shape[-1])
    weight = part.parameters["weight"]
    return (cotangent @ weight,), {"weight": pulled.T @ flat, "bias": pulled.sum(axis=0)}


def _of_feed_forward(part: OraclePart, x: Any, cotangent: Array) -> Any:
    """Differentiate max(x W1^T + b1, 0) W2^T + b2."""
    held = part.parameters
    flat, pulled = x.reshape(-1, x.shape[-1]), cotangent.reshape(-1, cotangent.shape[-1])
    before = flat @ held["inner.weight"].T + held["inner.bias"]
    inner = (pulled @ held["outer.weight"]) * (before > 0)
    return ((inner @ held["inner.weight"]).reshape(x.shape),), {
        "inner.weight": inner.T @ flat,
        "inner.bias": inner.sum(axis=0),
        "outer.weight": pulled.T @ np.maximum(before, 0.0),
        "outer.bias": pulled.sum(axis=0),
    }


PULLS: Mapping[str, Callable[..., Any]] = {
    "generator": _of_generator,
    "feed_forward": _of_feed_forward,
}


def floating(value: Input) -> bool:
    """Say whether `value` is an array of floating-point numbers, of any width."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fV"


def probe(
    component: str,
    sizes: Sizes | None = None,
    bend: Bend = lambda answer, part: answer,
    *,
    precision: str = "float64",
    seed: int = 7,
    **choices: Value,
) -> Probe:
    """Return a probe of `component` with drawn parameters, answering with the bent oracle."""
    wanted = sizes or Sizes()
    subject = Subject(OracleBackend(bend, choices=choices))
    rng = np.random.default_rng(seed)
    given = draw(component, wanted, subject.choices, rng)
    return subject.part(component, wanted, parameters=given, precision=precision)


@contextmanager
def claimed() -> Iterator[None]:
    """Fail where something ends as absent, which pytest would take for a test to skip."""
    try:
        yield
    except Absent as absence:
        pytest.fail(f"absent: {absence}")
