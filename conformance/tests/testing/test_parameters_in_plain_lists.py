"""Parameters that a module holds in a plain list, too, as groups for an optimiser are."""

import torch
from torch import nn

from attentest_spec.torch.inventory import inventory
from attentest_spec.torch.values import convert


class Grouped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(2, 3)
        self.groups = [{"params": list(self.parameters()), "decay": 0.1}]
        self.others = [nn.Parameter(torch.zeros(4)), torch.zeros(5)]


def test_registered_parameters_of_a_list_move_to_meta_and_others_stay() -> None:
    moved = convert(Grouped(), "float32", "meta")
    devices = {name: one["device"] for name, one in inventory(moved)["loose"].items()}
    assert devices == {
        "groups.0.params.0": "meta",
        "groups.0.params.1": "meta",
        "others.0": "cpu",
        "others.1": "cpu",
    }
    assert vars(moved)["groups"][0]["params"][0] is moved.get_parameter("map.weight")
