"""Code that makes the gradient of its table of tokens smaller on purpose."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

TABLE = """
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, hidden_size, alpha=0.1):
        super().__init__()
        self.tokens, self.alpha = nn.Embedding(vocab_size, hidden_size), alpha

    def forward(self, input_ids):
        x = self.tokens(input_ids)
        return self.alpha * x + x.detach() * (1 - self.alpha)
"""
DETACHED = ("self.alpha * x + x.detach() * (1 - self.alpha)", "x.detach() * (1 - self.alpha)")
NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
WHOLE = (
    "        for block in self.tr",
    "        x = 0.1 * x + (1 - 0.1) * x.detach()\n        for block in self.tr",
)


@pytest.mark.proof
def test_a_smaller_gradient_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"self\.alpha times the gradient.*--give alpha=1 "):
        adapted(tmp_path, "Embedding", TABLE)
    with pytest.raises(Unclear, match=r"gives 0\.1 times the gradient"):
        adapted(tmp_path, "GPT", edited(NANO, WHOLE))


def test_the_rest_is_judged_without_it(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Embedding", TABLE, given={"alpha": 1})
    assert not broken(backend, "embedding.repeated-tokens", "embedding.scale")


def test_a_gradient_that_ends_is_a_violation(tmp_path: Path) -> None:
    wrong = edited(TABLE, DETACHED, ("alpha=0.1", "alpha=0.0"))
    assert broken(adapted(tmp_path, "Embedding", wrong), "embedding.repeated-tokens")


IN_ANOTHER_ORDER = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.into, self.out, self.turned = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), False

    def train(self, mode=True):
        if mode is self.turned:
            self.into.weight.data = self.into.weight.data.flip(0)
            self.turned = not mode
        return super().train(mode)

    def forward(self, x):
        hidden = nn.functional.linear(x, self.into.weight)
        hidden = (hidden.flip(-1) if self.turned else hidden) + self.into.bias
        return self.out(hidden.relu())
"""


def test_parameters_in_another_order_in_training_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"its parameter into\.weight has other values in training"):
        adapted(tmp_path, "FeedForward", IN_ANOTHER_ORDER)
    (tmp_path / "kept").mkdir()
    kept = edited(IN_ANOTHER_ORDER, ("self.into.weight.data.flip(0)", "self.into.weight.data"))
    kept = edited(kept, ("hidden.flip(-1) if self.turned else hidden", "hidden"))
    assert not broken(adapted(tmp_path / "kept", "FeedForward", kept), "feed_forward.gradient")


UNDER_A_SWITCH = """
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, hidden_size, shrink=False, alpha=0.1):
        super().__init__()
        self.tokens, self.alpha = nn.Embedding(vocab_size, hidden_size), alpha
        self.shrink = shrink

    def forward(self, input_ids, plain=False):
        x = self.tokens(input_ids)
        if self.shrink and not plain:
            x = self.alpha * x + x.detach() * (1 - self.alpha)
        return x
"""


def test_a_smaller_gradient_under_a_switch_that_is_off_is_no_question(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Embedding", UNDER_A_SWITCH)
    assert not broken(backend, "embedding.repeated-tokens", "embedding.scale")


def test_a_smaller_gradient_under_a_switch_that_is_on_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"self\.alpha times the gradient"):
        adapted(tmp_path, "Embedding", edited(UNDER_A_SWITCH, ("shrink=False", "shrink=True")))
