"""Names that the code of a call reads and writes."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch

from attentest_spec.contract import Unsupported
from attentest_spec.torch import module_on_arrays


class _Cached:
    """An object that a call leaves a cache in, in a whole and in a part."""

    def __init__(self, width: int) -> None:
        self.weight = np.ones(width)
        self.scaled = np.zeros(width)
        self.rows = np.zeros((4, width))
        self.count = np.ones(width)

    def __call__(self, x: Any) -> Any:
        self.scaled = x * self.weight
        self.rows[: len(x)] = x
        self.count = self.count * 1.0
        return self.scaled * self.count + 0 * self.rows[: len(x)]


class _Named:
    """An object whose arrays are read by names that code puts together."""

    __slots__ = ("eps", "grad_1", "w_1", "w_2")

    def __init__(self, width: int) -> None:
        self.eps, self.grad_1 = 1e-5, np.zeros(width)
        for number in (1, 2):
            setattr(self, f"w_{number}", np.random.randn(width))

    def __call__(self, x: Any) -> Any:
        for number in (1, 2):
            x = x * getattr(self, f"w_{number}")
        return x


class _Module:
    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.forward(*args, **named)

    def forward(self, *args: Any) -> Any:
        raise NotImplementedError


class _Inner(_Module):
    def __init__(self, width: int) -> None:
        self.weight = np.random.randn(width)

    def forward(self, x: Any) -> Any:
        return x * self.weight


class _Outer(_Module):
    def __init__(self, width: int) -> None:
        self.inner = _Inner(width)
        self.training = True

    def forward(self, x: Any, shift: float = 1.0) -> Any:
        return self.inner(x) + shift


class _Value:
    """The value of an engine of gradients."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self._backward = lambda: None

    def __mul__(self, other: Any) -> Any:
        return _Value(self.data * other.data)


class _Engine:
    def __init__(self, width: int) -> None:
        self.weight = _Value(np.random.randn(width))

    def __call__(self, x: Any) -> Any:
        return _Value(x) * self.weight


def _names(kind: type) -> set[str]:
    return {name for name, _ in module_on_arrays(kind)(3).named_parameters()}


class _Forgotten:
    def __init__(self, width: int) -> None:
        self.weight, self.bias = np.random.randn(width), np.zeros(width)

    def __call__(self, x: Any) -> Any:
        return x * self.weight

    def backward(self, grad: Any) -> None:
        self.bias = self.bias - grad


def test_an_unread_array_with_the_name_of_a_parameter_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="holds the array bias, and the code of a call"):
        module_on_arrays(_Forgotten)(3)


def test_arrays_that_a_call_writes_are_no_parameters() -> None:
    assert _names(_Cached) == {"weight", "count"}


def test_attributes_are_read_by_names_put_together_and_from_slots() -> None:
    assert _names(_Named) == {"w_1", "w_2"}


def test_a_call_that_gives_all_to_forward_has_its_arguments() -> None:
    made = module_on_arrays(_Outer)(3).eval()
    x = torch.ones(2, 3)
    assert _names(_Outer) == {"inner.weight"}
    with torch.no_grad():
        assert torch.allclose(made(x, shift=2.0), made.get_parameter("inner.weight") + 1 + x)
    assert not made.training


def test_objects_that_hold_an_array_as_data_are_results() -> None:
    made = module_on_arrays(_Engine)(3)
    x = torch.ones(2, 3)
    with torch.no_grad():
        result = made(x)
        assert torch.equal(result, x * made.get_parameter("weight.data"))
        assert torch.equal(pickle.loads(pickle.dumps(made))(x), result)
