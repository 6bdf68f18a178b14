"""What was done to a backend in one example, in words and as code that does it again."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np

from attentest.harness.errors import Violation
from attentest.results.verdict import Witness
from attentest_spec import Sizes
from attentest_spec.contract import Input
from attentest_spec.setting import Array

_FEW = 3000
"""Numbers that a reproduction may hold before it stops being pasteable."""


class Record:
    """The steps of the current example."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.loader = f"registry.load({backend!r})"
        self._words: list[str] = []
        self._code: list[str] = []

    def clear(self) -> None:
        """Start over with a new example."""
        self._words.clear()
        self._code.clear()

    def built(self, component: str, sizes: Sizes, precision: str) -> None:
        """Record that a part was built."""
        defaults = asdict(Sizes())
        told = {name: value for name, value in asdict(sizes).items() if value != defaults[name]}
        shown = ", ".join(f"{name}={value!r}" for name, value in told.items())
        asked = "" if precision == "float64" else f", precision={precision!r}"
        self._words.append(f"build {component} with {shown or 'default sizes'} in {precision}")
        self._code.append(f"part = backend.build({component!r}, Sizes({shown}){asked})")

    def loaded(self, parameters: Mapping[str, Array]) -> None:
        """Record that parameters were loaded."""
        if parameters:
            self._words.append(f"load {len(parameters)} parameters")
            rows = (f"    {name!r}: {literal(values)}," for name, values in parameters.items())
            self._code.append("part.load({\n" + "\n".join(rows) + "\n})")

    def called(self, inputs: tuple[Input, ...], method: str) -> None:
        """Record a call."""
        self._words.append(f"call it{' (' + method + ')' if method else ''} with {shapes(inputs)}")
        asked = f"\n    method={method!r}," if method else ""
        self._code.append(f"print(part(\n{_rows(inputs)}{asked}\n))")

    def pulled(self, inputs: tuple[Input, ...], cotangent: Annotated[Array, "*shape"]) -> None:
        """Record a call for gradients; the cotangent has the shape of the output."""
        self._words.append(f"pull a gradient back to {shapes(inputs)}")
        self._code.append(f"print(part.vjp((\n{_rows(inputs)}\n),\n    {literal(cotangent)}\n))")

    def did(self, doing: str) -> None:
        """Record a step that has no code of its own."""
        self._words.append(doing)
        self._code.append(f"# then: {doing}")

    def witness(self, violation: Violation | None = None) -> Witness:
        """Return what was recorded, with the arrays of `violation`."""
        head = ["import numpy as np", "from attentest_spec import Sizes, registry", ""]
        code = "\n".join([*head, f"backend = {self.loader}", *self._code])
        return Witness(
            steps=tuple(self._words),
            code=code if len(code) < 40 * _FEW else "# too large to paste; see the steps",
            actual=_shown(violation.actual if violation else None),
            expected=_shown(violation.expected if violation else None),
        )


def literal(value: Input) -> str:
    """Return Python code for `value`."""
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.dtype == bool or np.issubdtype(value.dtype, np.integer):
        return (
            f"np.array({value.tolist()})" if value.size else f"np.zeros({value.shape}, dtype=int)"
        )
    numbers = value.astype(np.float64).tolist()
    text = f"np.array({numbers})".replace("nan", "np.nan").replace("inf", "np.inf")
    return text if value.dtype == np.float64 else f"{text}.astype({str(value.dtype)!r})"


def _rows(inputs: tuple[Input, ...]) -> str:
    """Return one line of code for each input."""
    return "\n".join(f"    {literal(value)}," for value in inputs)


def shapes(inputs: tuple[Input, ...]) -> str:
    """Return the shapes of `inputs` in words."""
    return ", ".join(
        str(value.shape) if isinstance(value, np.ndarray) else repr(value) for value in inputs
    )


def _shown(value: Any) -> str:
    if value is None:
        return ""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        array = array.astype(np.float64)
    return np.array2string(array, precision=6, suppress_small=False, threshold=60)
