"""The torch adapter counts the operations of matrix products, also fused ones and gradients."""

import numpy as np
import pytest
import torch
from torch import nn

from attentest_spec import Counted, Sizes
from attentest_spec.torch import Recipe, TorchBackend

BATCH, LENGTH, WIDTH, INNER, HEADS = 2, 5, 6, 7, 2


def part(component: str, recipe: Recipe) -> Counted:
    built = TorchBackend(name="it", title="it", recipes={component: recipe}).build(
        component, Sizes(d_model=WIDTH, heads=HEADS)
    )
    assert isinstance(built, Counted)
    return built


def test_the_products_of_linear_maps_are_counted() -> None:
    maps = Recipe(lambda sizes: nn.Sequential(nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH)))
    x = np.ones((BATCH, LENGTH, WIDTH))
    forward = 2 * 2 * BATCH * LENGTH * WIDTH * INNER
    assert part("feed_forward", maps).flops((x,)) == forward


def test_gradients_of_the_inputs_are_counted() -> None:
    """Without a parameter map there are those of the inputs alone: one product more for each."""
    maps = Recipe(lambda sizes: nn.Linear(WIDTH, INNER))
    x = np.ones((BATCH, LENGTH, WIDTH))
    forward = 2 * BATCH * LENGTH * WIDTH * INNER
    counted = part("feed_forward", maps).flops((x,), np.ones((BATCH, LENGTH, INNER)))
    assert counted == 2 * forward


@pytest.mark.parametrize("both", [False, True])
def test_a_fused_kernel_hides_nothing(both: bool) -> None:
    fused = Recipe(lambda sizes: nn.functional.scaled_dot_product_attention)
    query = np.ones((BATCH, HEADS, LENGTH, WIDTH))
    key, value = np.ones((2, BATCH, HEADS, 3, WIDTH))
    forward = 2 * 2 * BATCH * HEADS * LENGTH * 3 * WIDTH
    cotangent = np.ones_like(query) if both else None
    counted = part("attention", fused).flops((query, key, value), cotangent)
    assert counted == forward * (3 if both else 1)


def test_a_fused_layer_hides_nothing() -> None:
    def build(sizes: Sizes) -> nn.Module:
        return nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, batch_first=True)

    x = np.ones((BATCH, LENGTH, WIDTH))
    rows = BATCH * LENGTH
    projections, scores = 4 * 2 * rows * WIDTH**2, 2 * 2 * BATCH * LENGTH**2 * WIDTH
    inner = 2 * 2 * rows * WIDTH * INNER
    assert part("encoder_layer", Recipe(build)).flops((x,)) == projections + scores + inner
    assert torch.is_grad_enabled()
