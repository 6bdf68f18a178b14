"""Complex buffers of a module, which torch would make real with its parameters."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attentest_spec.sizes import Sizes
from attentest_spec.torch import Recipe, TorchBackend

SIZES = Sizes(d_model=6, heads=2)


class Turning(nn.Module):
    """Turns pairs of columns by a complex buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(3), torch.arange(3.0)))

    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (3, 2))) * self.turns)


def test_complex_buffers_stay_complex_in_another_precision() -> None:
    recipes = {"generator": Recipe(build=lambda sizes: Turning())}
    part = TorchBackend(name="turning", title="", recipes=recipes).build("generator", SIZES)
    for moved in (part, part.moved("float32")):
        assert moved(np.eye(6, dtype="float32"))[0, 0, 1] == 0
        assert moved(np.eye(6, dtype="float32"))[2, 1, 1] == pytest.approx(np.sin(1.0))
