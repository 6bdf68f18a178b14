"""Code that keeps checkpoints, which give gradients to a call of `backward` alone."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken, edited

CODE = """
from torch import nn
from torch.utils.checkpoint import checkpoint


class FeedForward(nn.Module):
    def __init__(self, dim, dim_inner):
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, dim_inner), nn.Linear(dim_inner, dim)

    def forward(self, x):
        inner = self.inner(x)
        return self.outer(checkpoint(lambda one: one.relu(), inner, use_reentrant=True))
"""
pytestmark = pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
SLUGS = ("feed_forward.gradient", "feed_forward.every-parameter-reached")


def test_gradients_of_checkpoints_are_those_of_a_backward_call(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "FeedForward", CODE), *SLUGS)


@pytest.mark.parametrize("wrong", ["inner.detach()", "inner * 0.0"])
def test_missing_gradients_behind_checkpoints_are_detected(tmp_path: Path, wrong: str) -> None:
    mistaken = edited(CODE, ("one.relu(), inner,", f"one.relu(), {wrong},"))
    assert broken(adapted(tmp_path, "FeedForward", mistaken, anyway=True), *SLUGS)
