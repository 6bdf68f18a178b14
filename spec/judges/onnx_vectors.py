"""The test vectors inside the package onnx, one object per case."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper, numpy_helper

from attentest_spec.setting import Array

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"

OPERATORS = (
    "Attention",
    "Gather",
    "Gelu",
    "Gemm",
    "LayerNormalization",
    "LogSoftmax",
    "MatMul",
    "RMSNormalization",
    "Relu",
    "RotaryEmbedding",
    "Softmax",
    "Swish",
    "Trilu",
)
"""The operators that are near to a component of the spec."""


@dataclass(frozen=True)
class Case:
    """One application of one operator; arrays by the operator's own names, absent ones left out."""

    name: str
    operator: str
    attributes: Mapping[str, Any]
    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]

    @property
    def dtypes(self) -> set[str]:
        """The floating dtypes among its arrays."""
        arrays = (*self.inputs.values(), *self.outputs.values())
        return {str(one.dtype) for one in arrays if one.dtype.kind not in "iub"}


@cache
def cases() -> tuple[Case, ...]:
    """Return every case whose graph is one node of one of the operators."""
    return tuple(_found())


def _found() -> Iterator[Case]:
    for path in sorted(DATA.glob("*/*/model.onnx")):
        graph = onnx.load(path).graph
        if len(graph.node) == 1 and graph.node[0].op_type in OPERATORS:
            yield _read(path.parent, graph)


def _read(folder: Path, graph: onnx.GraphProto) -> Case:
    node = graph.node[0]
    schema = onnx.defs.get_schema(node.op_type)
    stored = folder / "test_data_set_0"
    constants = {one.name: numpy_helper.to_array(one) for one in graph.initializer}
    asked = [one.name for one in graph.input if one.name not in constants]
    given = constants | _arrays(stored, "input", asked)
    returned = _arrays(stored, "output", [one.name for one in graph.output])
    return Case(
        f"{folder.parent.name}/{folder.name}",
        node.op_type,
        {one.name: helper.get_attribute_value(one) for one in node.attribute},
        _named(schema.inputs, node.input, given),
        _named(schema.outputs, node.output, returned),
    )


def _arrays(folder: Path, kind: str, names: list[str]) -> dict[str, Array]:
    found = {}
    for number, name in enumerate(names):
        tensor = TensorProto()
        tensor.ParseFromString((folder / f"{kind}_{number}.pb").read_bytes())
        found[name] = numpy_helper.to_array(tensor)
    return found


def _named(formal: Any, actual: Any, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return `arrays` by the operator's names of them; an absent one has an empty name."""
    return {slot.name: arrays[name] for slot, name in zip(formal, actual, strict=False) if name}
