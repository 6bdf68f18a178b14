"""Gradients that are not finite: the line that takes the root of zero is named."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from attentest.analysis.lines.locate import locate
from attentest.harness.subject import Subject
from attentest.judging.bench import Bench
from attentest_spec import Sizes
from attentest_spec.torch import Recipe, TorchBackend


class Outside(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        squares = x.square().mean(-1, keepdim=True)
        return x / (self.divisor(squares)) * self.weight

    def divisor(self, squares: Tensor) -> Tensor:
        return squares.sqrt() + 1e-6


class Inside(Outside):
    def divisor(self, squares: Tensor) -> Tensor:
        return (squares + 1e-6).sqrt()


def pulled_back(norm: type[Outside]) -> Subject:
    """Return a subject that was asked for a gradient where a row is zeros."""
    recipe = Recipe(lambda sizes: norm(sizes.d_model), parameters={"gain": "weight"})
    place = "inside-root" if norm is Inside else "added-to-rms"
    choices = {"rms_epsilon_place": place, "rms_epsilon": 1e-6}
    backend = TorchBackend(name="own", title="own", recipes={"rms_norm": recipe}, choices=choices)
    subject = Bench(backend).subject()
    part = subject.part("rms_norm", Sizes(d_model=4))
    rows = np.ones((1, 2, 4))
    rows[:, 1] = 0.0
    part.vjp((rows,), np.ones_like(rows))
    return subject


@pytest.mark.parametrize(("norm", "code"), [(Outside, "squares.sqrt() + 1e-6"), (Inside, "")])
def test_line_of_the_root_is_named(norm: type[Outside], code: str) -> None:
    subject = pulled_back(norm)
    found = locate(subject, subject.trace, {})
    assert (code in found.code and found.step == "gradient") if found else not code
