"""The index of a folder of vectors: what every case is, and where its numbers are."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np

import attentest
from attentest.studies.vectors.cases import Case, Expected
from attentest_spec import COMPONENTS, Choices
from attentest_spec.choices import Value
from attentest_spec.clauses import clauses
from attentest_spec.precision import dtype
from attentest_spec.setting import Array

FORMAT = 1
"""The version of the index; it changes when a reader of an older one could go wrong."""

CONVENTIONS = (
    "Batch first; token ids int64; masks bool, true = may be attended, to be broadcast to (batch, "
    "heads, queries, keys); linear weights (out, in). Inputs and parameters are in the precision "
    "of the case, expected arrays are float64 or bool.",
    "An output is right where |found - expected| <= absolute + relative * |expected|, NaN where "
    "NaN is expected, at the rows for which `judged` is true: it has the leading axes of the "
    "output. What stands at the other rows is not specified.",
)

_METHODS = {"encode": ("source",), "decode": ("target", "memory", "source")}
"""The inputs of the model's methods; those of components are in the spec."""

SCOPE = (
    "Equality of outputs in evaluation mode. What must be refused, gradients, training mode, state "
    "and initialisation are judged by the suite alone."
)


class Index:
    """The entries of all cases, in the order in which they are added."""

    def __init__(self, choices: Choices, seed: int, file_format: str) -> None:
        self._choices = choices.as_dict()
        self._head = {
            "type": "vectors",
            "format": FORMAT,
            "version": attentest.__version__,
            "seed": seed,
            "files": file_format,
            "conventions": list(CONVENTIONS),
            "scope": SCOPE,
            "choices": self._choices,
        }
        self._cases: list[dict[str, Any]] = []

    @contextmanager
    def file(self, name: str) -> Iterator["File"]:
        """Begin a file; the cases that are added to it are told when it is complete."""
        file = File(name, self._choices)
        yield file
        self._cases.extend(file.cases)

    def text(self) -> str:
        """Return the index as JSON, one case a line."""
        known = clauses()
        slugs = dict.fromkeys(case["clause"] for case in self._cases)
        told = {slug: {"level": known[slug].level, "text": known[slug].text} for slug in slugs}
        head = json.dumps({**self._head, "clauses": told}, indent=1, ensure_ascii=False)
        lines = ",\n".join(
            json.dumps(case, ensure_ascii=False, allow_nan=False) for case in self._cases
        )
        return f'{head.removesuffix("}").rstrip()},\n "cases": [\n{lines}\n]}}\n'


class File:
    """One file of tensors, and the cases whose numbers are in it."""

    def __init__(self, name: str, choices: Mapping[str, Value]) -> None:
        self.name = name
        self._choices = choices
        self.arrays: dict[str, Array] = {}
        self.cases: list[dict[str, Any]] = []

    def add(self, case: Case) -> None:
        """Keep the numbers of `case`, and tell what it is."""
        start = f"{len(self.cases)}"
        kind = dtype(case.precision)
        names = _input_names(case)
        inputs = [
            {"name": name, **self._input(f"{start}.{name}", value, kind)}
            for name, value in zip(names, case.given.inputs, strict=True)
        ]
        parameters = {
            name: self._kept(f"{start}.{name}", values.astype(kind))
            for name, values in case.parameters.items()
        }
        expected = [self._expected(f"{start}.expected", one) for one in case.expected]
        self.cases.append(
            {
                "name": case.name,
                "component": case.recipe.component,
                "method": case.recipe.method,
                "clause": case.clause,
                "precision": case.precision,
                "sizes": asdict(case.sizes),
                "choices": {
                    name: value
                    for name, value in case.choices.as_dict().items()
                    if value != self._choices[name]
                },
                "file": self.name,
                "inputs": inputs,
                "parameters": parameters,
                "expected": expected,
            }
        )

    def _input(self, key: str, value: Any, kind: np.dtype[Any]) -> dict[str, Any]:
        if not isinstance(value, np.ndarray):
            return {"value": value}
        return self._kept(key, value.astype(kind) if value.dtype == np.float64 else value)

    def _expected(self, start: str, one: Expected) -> dict[str, Any]:
        rows = one.rows
        return {
            "name": one.name,
            **self._kept(f"{start}.{one.name}", one.array),
            "absolute": one.absolute,
            "relative": 0.0,
            "judged": None if rows is None else self._kept(f"{start}.judged", rows),
            "optional": one.optional,
        }

    def _kept(self, key: str, array: Array) -> dict[str, Any]:
        self.arrays[key] = array
        return {"tensor": key, "dtype": str(array.dtype), "shape": list(array.shape)}


def _input_names(case: Case) -> tuple[str, ...]:
    if case.recipe.method:
        return _METHODS[case.recipe.method]
    return COMPONENTS[case.recipe.component].inputs
