"""Decoder-only models that have to be given the labels of their loss."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited
from proof import share
from torch import nn
from torch.nn import functional

from attentest.targets.language_models.calls.losses import is_of_loss

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
FORWARD = NANO[NANO.index("    def forward(self, idx, targets=None):") :]
LATER = FORWARD.replace("idx, targets=None", "X, Y").replace("idx", "X")
LATER = LATER.replace("targets is None", "Y is None").replace("targets.view", "Y.view")
SOURCE = NANO.replace(FORWARD, LATER).replace("class GPT(", "class Model(")


class _Loss(nn.Module):
    def forward(self, x, y):
        return functional.cross_entropy(x.flatten(0, 1), y.flatten()) if y is not None else x


class _TwoSides(nn.Module):
    def forward(self, x, y):
        return functional.cross_entropy(x + y[:, 1:], y.flatten())


def test_labels_are_read_by_a_loss_alone() -> None:
    assert is_of_loss(_Loss.forward, "y")
    assert not is_of_loss(_Loss.forward, "x")
    assert not is_of_loss(_TwoSides.forward, "y")


@share(2, rest=1)
@pytest.mark.parametrize("mistaken", [False, True])
def test_a_model_with_such_labels_is_judged(tmp_path: Path, mistaken: bool) -> None:
    source = edited(SOURCE, ("x + self.attn(", "self.attn(")) if mistaken else SOURCE
    backend = adapted(tmp_path, "Model", source)
    assert bool(broken(backend, "language_model.formula")) is mistaken
