"""The reference backend: the oracles behind the contract, under any choices."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from attentest_spec import Choices, Limits, Part, Setting, Sizes, Unsupported
from attentest_spec.choices import Value
from attentest_spec.contract import Input, Step
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.precision import dtype
from attentest_spec.setting import Array


@dataclass(frozen=True)
class Reference:
    """Every component, computed by its oracle in float64; it can be called, loaded and traced."""

    given: Choices
    name: str = "oracle"
    title: str = "the oracles of the spec"
    limits: Limits = field(default_factory=Limits)
    components: Collection[str] = tuple(ORACLES)

    @property
    def choices(self) -> Mapping[str, Value]:
        """All choices, each declared."""
        return self.given.as_dict()

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> Part:
        """Build `component`; see :meth:`attentest_spec.Backend.build`."""
        return _ReferencePart(component, Setting(sizes, self.given, {}), precision)


class _ReferencePart:
    """One oracle with its parameters."""

    capabilities: Collection[str] = ()

    def __init__(self, component: str, given: Setting, precision: str) -> None:
        self._component = component
        self._given = given
        self._dtype = dtype(precision)

    def __call__(self, *inputs: Input, method: str = "") -> Any:
        return self._answer(self._given, inputs, method)

    def steps(self, inputs: tuple[Input, ...]) -> list[Step]:
        """Return what the parts inside did; see :meth:`attentest_spec.Traceable.steps`."""
        seen: list[Step] = []
        calls: Counter[str] = Counter()

        def observe(part: str, given: tuple[Any, ...], output: Any) -> None:
            arrays = tuple(one for one in given if isinstance(one, np.ndarray))
            seen.append(Step(part, calls[part], arrays, output))
            calls[part] += 1

        self._answer(replace(self._given, observe=observe), inputs)
        return seen

    def _answer(self, given: Setting, inputs: tuple[Input, ...], method: str = "") -> Any:
        oracle = METHODS[method] if method else ORACLES[self._component]
        answer = oracle(given, *(self._cast(one, np.float64) for one in inputs))
        if isinstance(answer, tuple):
            return tuple(self._cast(one, self._dtype) for one in answer)
        return self._cast(answer, self._dtype)

    def _cast(self, value: Any, wanted: Any) -> Any:
        """Return `value` in the precision `wanted`, where it is an array of numbers of ours."""
        floating = isinstance(value, np.ndarray) and value.dtype.kind in "fV"
        return value.astype(wanted) if floating else value

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Take the canonical parameters as they are."""
        wide = {name: self._cast(values, np.float64) for name, values in parameters.items()}
        self._given = replace(self._given, parameters=wide)

    def __getattr__(self, name: str) -> Any:
        raise Unsupported(f"the reference has no {name}")
