"""Gradients of torch code: numbers that are overwritten, and layers that are computed again."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend
from attentest_spec.torch.gradients import Overwritten, gradients, naming_overwritten

X = np.ones((2, 3))


def pulled(call: object) -> np.ndarray:
    """Return the gradient of a function by its input."""
    recipe = Recipe(build=lambda sizes: call)
    part = TorchBackend(name="own", title="", recipes={"generator": recipe}).build(
        "generator", Sizes()
    )
    (found,) = part.vjp((X,), X).inputs
    assert found is not None
    return found


def test_number_that_its_gradient_needs_is_not_overwritten() -> None:
    def overwriting(x: Tensor) -> Tensor:
        share = x.sigmoid()
        share += 1.0
        return share

    with pytest.raises(Overwritten, match="overwritten in place") as failure:
        pulled(overwriting)
    first = overwriting.__code__.co_firstlineno
    assert failure.value.place == f"{Path(__file__)}:{first + 1} in overwriting"


@pytest.mark.parametrize("text", ["another failure", "modified by an inplace operation"])
def test_failure_without_a_line_stays_as_it_is(text: str) -> None:
    with (
        pytest.raises(RuntimeError, match=text) as failure,
        naming_overwritten(lambda: torch.ones(1, requires_grad=True)),
    ):
        raise RuntimeError(text)
    assert not isinstance(failure.value, Overwritten)


def test_layers_that_are_computed_again_have_a_gradient() -> None:
    found = pulled(lambda x: checkpoint(torch.square, x, use_reentrant=True))
    assert np.array_equal(found, 2 * X)


def test_gradients_that_were_held_before_stay() -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.full((2,), 7.0)
    total = checkpoint(torch.square, x, use_reentrant=True).sum()
    (found,) = gradients(total, [x])
    assert found is not None
    assert found.tolist() == [2.0, 2.0]
    assert x.grad.tolist() == [7.0, 7.0]
