"""Optimisers behind the contract that take one gradient after the other."""

from collections.abc import Iterable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

from attentest_spec import Incremental, Sizes, Unsupported
from attentest_spec.torch import Recipe, TorchBackend

START, GRADIENTS, RATES = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [0.0, 2.0]]), [0.5, 0.25]
AFTER = np.array([[0.5, 2.0], [0.5, 1.5]])


def descent(
    sizes: Sizes, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    for gradient, rate in zip(gradients, rates, strict=True):
        values = values - rate * gradient
        yield values


def built(recipe: Recipe) -> Incremental:
    return TorchBackend(name="a", title="a", recipes={"optimiser": recipe}).build(
        "optimiser", Sizes()
    )


def test_generator_gives_all_updates_at_once() -> None:
    part = built(Recipe(build=lambda sizes: sizes, call=descent))
    assert callable(part)
    np.testing.assert_array_equal(part(START, GRADIENTS, np.array(RATES)), AFTER)


def test_generator_reads_each_gradient_when_its_update_is_asked_for() -> None:
    part, read = built(Recipe(build=lambda sizes: sizes, call=descent)), []

    def feed() -> Iterator[tuple[np.ndarray, float]]:
        for gradient, rate in zip(GRADIENTS, RATES, strict=True):
            read.append(rate)
            yield gradient, rate

    for number, after in enumerate(part.updates(START, feed())):
        np.testing.assert_array_equal(after, AFTER[number])
        assert read == RATES[: number + 1]
        assert torch.is_grad_enabled()
    assert read == RATES


def test_function_of_all_gradients_is_refused() -> None:
    part = built(Recipe(build=lambda sizes: sizes, call=lambda *inputs: inputs[1]))
    with pytest.raises(Unsupported, match="all gradients at once"):
        part.updates(START, iter(()))


def test_number_has_no_gradient() -> None:
    recipe = Recipe(build=lambda sizes: sizes, call=lambda sizes, step: 0.5 * step)
    part = TorchBackend(name="a", title="a", recipes={"learning_rate": recipe}).build(
        "learning_rate", Sizes()
    )
    pulled = part.vjp((3,), np.array(1.0))
    assert (float(pulled.output), pulled.inputs) == (1.5, (None,))
