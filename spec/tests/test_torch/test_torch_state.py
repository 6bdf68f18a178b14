"""The state of a torch part by its own names: read, set, and ties in it."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attentest_spec import Part, Sizes, Stateful, Unsupported
from attentest_spec.torch import Recipe, TorchBackend, TorchPart


class Tied(nn.Module):
    """Two names for one matrix, a table that is saved and one that is not."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.first = nn.Linear(sizes.d_model, sizes.d_model, bias=False)
        self.second = nn.Linear(sizes.d_model, sizes.d_model, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("saved", torch.arange(3))
        self.register_buffer("unsaved", torch.arange(4), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the matrix twice."""
        second: Tensor = self.second(self.first(x))
        return second


BACKEND = TorchBackend(
    name="stateful",
    title="a module with a state",
    recipes={
        "encoder": Recipe(Tied),
        "causal_mask": Recipe(lambda sizes: lambda length: torch.ones(length, length) > 0),
    },
)


@pytest.fixture
def part() -> TorchPart:
    return BACKEND.build("encoder", Sizes(d_model=2), precision="bfloat16")


def test_state_has_the_names_that_are_saved(part: TorchPart) -> None:
    assert isinstance(part, Stateful)
    assert isinstance(part, Part)
    assert list(part.state()) == ["saved", "first.weight", "second.weight"]


def test_tied_entries_are_one_array(part: TorchPart) -> None:
    state = part.state()
    assert state["first.weight"] is state["second.weight"]
    assert state["first.weight"] is not state["saved"]


def test_state_is_a_copy(part: TorchPart) -> None:
    state = part.state()
    before = state["first.weight"].tobytes()
    state["first.weight"][...] = 7
    assert part.state()["first.weight"].tobytes() == before


def test_restored_state_comes_back_bit_for_bit(part: TorchPart) -> None:
    given = {name: np.ones_like(array) for name, array in part.state().items()}
    given["first.weight"] = given["second.weight"] = -given["first.weight"] * 0  # negative zeros
    part.restore(given)
    assert all(array.tobytes() == given[name].tobytes() for name, array in part.state().items())


@pytest.mark.parametrize("wrong", ["missing", "extra", "shape"])
def test_another_state_is_refused(part: TorchPart, wrong: str) -> None:
    given = part.state()
    match wrong:
        case "missing":
            del given["saved"]
        case "extra":
            given["saved.too"] = given["saved"]
        case _:
            given["saved"] = given["saved"][:2]
    with pytest.raises(ValueError, match="saved"):
        part.restore(given)


def test_a_function_has_no_state() -> None:
    with pytest.raises(Unsupported):
        BACKEND.build("causal_mask", Sizes()).state()
