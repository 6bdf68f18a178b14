"""Masks that are made with the opposite meaning of the one that their user takes them for.

Whether the line that makes a mask is wrong, or the one that uses it, is shown by another mask that
is used there and is right, or by a function of torch that documents what it takes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from attentest.analysis.lines.alignment import Alignment
from attentest.analysis.lines.formula import Step
from attentest.analysis.lines.layouts import layouts
from attentest.analysis.lines.matching import FAR, is_mask
from attentest.analysis.lines.recording import Operation, Place, Value
from attentest_spec.setting import Array

_DOCUMENTED = {
    *("multi_head_attention_forward", "scaled_dot_product_attention"),
    *("_transformer_encoder_layer_fwd", "_native_multi_head_attention"),
}
"""Functions of torch that take masks, and say what True means."""

_TURNING = {"__invert__", "bitwise_not", "logical_not"}
"""Functions that always turn the meaning of a mask around."""

_INVERTING = {
    *_TURNING,
    "__eq__",
    "eq",
    "__ne__",
    "ne",
    "__rsub__",
}
"""Functions that may turn the meaning of a mask around."""


_AXES = "BHQK"
"""The axes of a mask, which has the last of them."""


class Inverted(NamedTuple):
    """An operation that makes the mask of `step` the other way around: it should be `value`."""

    operation: Operation
    step: Step
    value: Array


def inverted(alignment: Alignment) -> Iterator[Inverted]:
    """Yield the operations that may make a mask of the formula with the opposite meaning."""
    made = [one for one in alignment.called() if _makes_mask(one)]
    uses = {one.number: _Uses(alignment, one) for one in made}
    steps = [one for one in alignment.case.formula.steps if is_mask(one.value)]
    for operation in made:
        others = [uses[one.number] for one in made if one is not operation]
        if uses[operation.number].say_what_is_taken(others):
            array = operation.outputs[0].array
            if not steps and operation.name in _TURNING and array.ndim <= len(_AXES):
                step = _turned(operation, len(alignment.case.formula.steps))
                yield Inverted(operation, step, ~array)
            for step in steps:
                keep = layouts(step.value, step.axes, array.shape)
                if any(np.array_equal(array, one) or np.array_equal(array, ~one) for one in keep):
                    yield Inverted(operation, step, ~array)


def _turned(operation: Operation, number: int) -> Step:
    """Return the mask before `operation` turned it around, for a formula that makes none."""
    array = operation.outputs[0].array
    return Step("mask", "", "the mask as it was before", _AXES[-array.ndim :], ~array, number)


def _makes_mask(operation: Operation) -> bool:
    """Say whether an operation of the user makes booleans from something else, or inverts some."""
    array = operation.outputs[0].array
    if not is_mask(array) or operation.place is None:
        return False
    if operation.name in _TURNING:
        return True
    return array.size > 1 and not any(is_mask(one.array) for one in operation.inputs)


class _Uses:
    """The places at which a mask meets numbers, and whether one is in torch alone."""

    def __init__(self, alignment: Alignment, made: Operation) -> None:
        self.places: set[Place] = set()
        self.is_documented = False
        derived, turned = {made.outputs[0].number}, False
        for operation in alignment.called():
            taken = [one for one in operation.inputs if one.number in derived]
            if not taken:
                continue
            if operation.name in _DOCUMENTED:
                self.is_documented = not turned
            elif _carries_mask(operation):
                turned |= operation.name in _INVERTING
                derived |= {one.number for one in operation.outputs}
            elif operation.place is not None:
                self.places.add(operation.place)

    def say_what_is_taken(self, others: "list[_Uses]") -> bool:
        """Say whether the meaning that is taken is known: from torch, or from other masks."""
        return self.is_documented or any(self.places & one.places for one in others)


def _carries_mask(operation: Operation) -> bool:
    """Say whether an operation makes a mask of masks alone: booleans, or numbers to add."""
    return all(_is_maskish(one) for one in (*operation.inputs, *operation.outputs))


def _is_maskish(value: Value) -> bool:
    array = value.array
    if is_mask(array):
        return True
    if array.dtype.kind != "f" or not array.size:
        return False
    low, high = array.min(), array.max()
    few = np.logical_or(array == low, array == high).all()
    return bool(few and (low == high == 0 or low < -FAR or (low, high) == (0, 1)))
