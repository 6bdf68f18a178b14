"""Classes of Flax as classes of torch modules: lazy, with the parameters that `init` makes."""

import copy
import inspect
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.parameter import is_lazy

from attentest_spec.torch import is_of_variables, module_on_variables

linen = pytest.importorskip("flax.linen")
jax = pytest.importorskip("jax")


class Network(linen.Module):
    d_ff: int
    rate: float = 0.5

    @linen.compact
    def __call__(self, x: Any, deterministic: bool = True) -> Any:
        hidden = linen.relu(linen.Dense(self.d_ff, name="up")(x))
        hidden = linen.Dropout(self.rate, deterministic=deterministic)(hidden)
        return linen.Dense(x.shape[-1], name="down")(hidden)


class Widths(linen.Module):
    """Has a field without a hash."""

    widths: Sequence[int]

    @linen.compact
    def __call__(self, x: Any) -> Any:
        for width in self.widths:
            x = linen.Dense(width)(x)
        return x


class Looking(linen.Module):
    """Looks at the values of its input, as code that is compiled cannot."""

    @linen.compact
    def __call__(self, x: Any) -> Any:
        gain = self.param("gain", linen.initializers.ones, (x.shape[-1],))
        return x * gain if x.sum() > 0 else -x


def _called(kind: Any, *args: Any) -> tuple[Any, torch.Tensor]:
    torch.manual_seed(0)
    np.random.seed(0)
    made = module_on_variables(kind)(*args).eval()
    x = torch.randn(2, 3, 4)
    with torch.no_grad():
        made(x)
    return made, x


def test_parameters_are_made_by_the_first_call() -> None:
    made = module_on_variables(Network)(6)
    assert any(map(is_lazy, made.parameters()))
    made(torch.zeros(1, 3, 4))
    shapes = {name: tuple(one.shape) for name, one in made.named_parameters()}
    assert shapes == {
        "up.kernel": (4, 6),
        "up.bias": (6,),
        "down.kernel": (6, 4),
        "down.bias": (4,),
    }


@pytest.mark.parametrize(("kind", "args"), [(Network, (6,)), (Widths, ([5, 4],)), (Looking, ())])
def test_call_is_that_of_the_class(kind: Any, args: tuple[Any, ...]) -> None:
    made, x = _called(kind, *args)
    tree: dict[str, Any] = {}
    for name, value in made.named_parameters():
        branch, (*within, last) = tree, name.split(".")
        for one in within:
            branch = branch.setdefault(one, {})
        branch[last] = value.detach().numpy()
    expected = kind(*args).apply({"params": tree}, jax.numpy.asarray(x.numpy()))
    assert np.allclose(made(x).detach(), expected, atol=1e-6)


def test_gradients_reach_parameters_and_inputs() -> None:
    made, x = _called(Network, 6)
    made.double()
    x = x.double().requires_grad_()
    made(x).sum().backward()
    assert made.get_parameter("up.kernel").grad.abs().sum() > 0
    assert x.grad is not None
    assert torch.autograd.gradcheck(made, (x.detach().requires_grad_(),))


def test_mode_is_that_of_the_module_and_dropout_draws_from_torch() -> None:
    made, x = _called(Network, 6)
    assert torch.equal(made(x), made(x))
    made.train()
    torch.manual_seed(1)
    first, second = made(x), made(x)
    torch.manual_seed(1)
    assert torch.equal(made(x), first)
    assert not torch.equal(first, second)
    assert "deterministic" not in inspect.signature(made.forward).parameters


def test_copies_compute_the_same() -> None:
    made, x = _called(Network, 6)
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert torch.equal(copied(x), made(x))
        with torch.no_grad():
            copied.get_parameter("up.bias").add_(1.0)
        assert not torch.equal(copied(x), made(x))


def test_fields_of_every_class_are_no_arguments() -> None:
    assert list(inspect.signature(module_on_variables(Network)).parameters) == ["d_ff", "rate"]
    assert is_of_variables(Network)
    assert not is_of_variables(torch.nn.Linear)
    assert not is_of_variables(Network(6))
