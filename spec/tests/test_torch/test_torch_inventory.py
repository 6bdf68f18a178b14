"""Modules and tensors in plain containers, where torch does not look."""

import torch
from torch import nn

from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend

SIZES = Sizes(d_model=6, heads=2)


def test_tensor_in_a_list_is_loose() -> None:
    class Hiding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 3), nn.Linear(3, 2, bias=False)]
            self.tables = {"far": torch.ones(2), "near": 7}

    recipe = Recipe(build=lambda sizes: Hiding())
    part = TorchBackend(name="hiding", title="", recipes={"encoder": recipe}).build(
        "encoder", SIZES
    )
    held = part.inventory()
    assert held["parameters"] == {}
    assert set(held["loose"]) == {
        "layers.0.weight", "layers.0.bias", "layers.1.weight", "tables.far",
    }  # fmt: skip


def test_a_module_in_a_list_has_a_mode_too() -> None:
    class Hiding(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = [nn.Linear(2, 3), self]

    recipe = Recipe(build=lambda sizes: Hiding())
    part = TorchBackend(name="hiding", title="", recipes={"encoder": recipe}).build(
        "encoder", SIZES
    )
    assert part.inventory()["modes"] == {"": False, "layers.0": True}
