"""Classes of NumPy and JAX as classes of torch modules."""

import copy
import inspect
import pickle
from collections import namedtuple

import numpy as np
import pytest
import torch

from attentest_spec.contract import Unsupported
from attentest_spec.names import UnknownName
from attentest_spec.torch import module_on_arrays

Pair = namedtuple("Pair", "weight bias")


class Dense:
    def __init__(self, size, out):
        self.weight = np.random.randn(size, out)
        self.bias = np.zeros(out)
        self.grad = np.zeros((size, out))

    def forward(self, x):
        self.last = x
        return x @ self.weight + self.bias

    def backward(self, y):
        self.grad = self.last.T @ y


class Network:
    """Two layers."""

    def __init__(self, size: int, inner: int):
        self.layers = [Dense(size, inner), Dense(inner, size)]
        self.tied = self.layers[0].bias

    def __call__(self, x):
        first, second = self.layers
        return second.forward(np.maximum(first.forward(x), 0)) + self.tied.sum()


class Places:
    def __init__(self, size):
        self.table = np.sin(np.arange(5.0 * size)).reshape(5, size)
        self.scale = np.random.rand(size)

    def __call__(self, x):
        return x * self.scale + self.table[: len(x)]


class Tuples:
    def __init__(self, size):
        self.plain = (np.random.rand(size, size), np.ones(size))
        self.named = Pair(np.random.rand(size, size), np.ones(size))

    def __call__(self, x):
        weight, bias = self.plain
        return (x @ weight + bias) @ self.named.weight + self.named.bias


class Drops:
    def __init__(self, rng, size):
        self.weight = rng.random(size)

    def __call__(self, x, training=False):
        return x * 0 if training else x * self.weight


class Hidden:
    def __init__(self, size):
        self.weight = np.ones(size)

    def __call__(self, x):
        return x * next(iter(vars(self).values()))


def test_parameters_are_the_arrays_that_a_call_reads() -> None:
    module = module_on_arrays(Network)(2, 3)
    names = dict(module.named_parameters(remove_duplicate=False))
    layers = {f"layers.{n}.{one}" for n in (0, 1) for one in ("weight", "bias")}
    assert set(names) == {*layers, "tied"}
    assert names["tied"] is names["layers.0.bias"]


def test_numbers_are_those_of_the_class_and_follow_the_parameters() -> None:
    module, x = module_on_arrays(Network)(2, 3), torch.rand(4, 2, dtype=torch.float64)
    with torch.no_grad():
        first, second = module.layers.get_submodule("0"), module.layers.get_submodule("1")
        expected = (x @ first.weight + first.bias).relu() @ second.weight + second.bias
        torch.testing.assert_close(module(x), expected)
        second.bias += 1
        torch.testing.assert_close(module(x), expected + 1)
        assert module.float()(x.float()).dtype == torch.float32


def test_a_call_leaves_the_parameters_as_they_are() -> None:
    module, x = module_on_arrays(Network)(2, 3), torch.rand(4, 2, dtype=torch.float64)
    before = sorted(module.state_dict())
    with torch.no_grad():
        first = module(x)
        torch.testing.assert_close(module(x), first)
    assert sorted(module.state_dict()) == before


def test_parts_are_called_as_modules() -> None:
    module, seen = module_on_arrays(Network)(2, 3), []
    for name, part in module.named_modules():
        part.register_forward_hook(lambda *given, name=name: seen.append(name))
    with torch.no_grad():
        module(torch.rand(4, 2, dtype=torch.float64))
    assert seen == ["layers.0", "layers.1", ""]


def test_tables_are_no_parameters() -> None:
    module = module_on_arrays(Places)(3)
    assert [name for name, _ in module.named_parameters()] == ["scale"]


def test_arrays_in_tuples_are_parameters() -> None:
    module, x = module_on_arrays(Tuples)(2), torch.rand(4, 2, dtype=torch.float64)
    names = [name for name, _ in module.named_parameters()]
    assert names == ["plain.0", "plain.1", "named.weight", "named.bias"]
    with torch.no_grad():
        before = module(x)
        module.named.bias += 1
        torch.testing.assert_close(module(x), before + 1)


def test_mode_and_random_numbers_are_given() -> None:
    kind = module_on_arrays(Drops)
    assert list(inspect.signature(kind).parameters) == ["size"]
    module, x = kind(size=3).eval(), torch.ones(2, 3, dtype=torch.float64)
    with torch.no_grad():
        assert module(x).all()
        assert not module.train()(x).any()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_copies_are_independent(again) -> None:
    module, x = module_on_arrays(Network)(2, 3), torch.rand(4, 2, dtype=torch.float64)
    with torch.no_grad():
        before, other = module(x), again(module)
        torch.testing.assert_close(other(x), before)
        other.layers.get_submodule("1").bias += 1
        torch.testing.assert_close(module(x), before)


def test_names_and_signatures_are_those_of_the_class() -> None:
    kind = module_on_arrays(Network)
    assert (kind.__name__, kind.__doc__) == ("Network", "Two layers.")
    assert list(inspect.signature(kind.forward).parameters) == ["self", "x"]
    assert module_on_arrays(Network) is kind


def test_arrays_that_are_read_in_another_way_are_refused() -> None:
    with pytest.raises(Unsupported, match="reads none of them by its name"):
        module_on_arrays(Hidden)(3)
    with pytest.raises(UnknownName):
        module_on_arrays(Network, "cupy")


def test_gradients_of_jax_reach_the_parameters() -> None:
    jax = pytest.importorskip("jax")

    class Scaled:
        def __init__(self, key, size):
            self.weight = jax.random.normal(key, (size,))

        def __call__(self, x):
            return x * self.weight**2

    module, x = module_on_arrays(Scaled, "jax")(size=3).double(), torch.rand(2, 3).double()
    module(x).sum().backward()
    torch.testing.assert_close(module.weight.grad, (2 * x * module.weight.detach()).sum(0))
