"""Questions about a text argument name the words that the constructor compares it with."""

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

NETWORK = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, starting):
        super().__init__()
        assert starting in ["kaiming", "xavier"]
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        if starting == "xavier":
            nn.init.xavier_uniform_(self.inner.weight)

    def forward(self, x):
        return self.outer(self.inner(x).relu())
"""


def test_a_word_with_which_the_numbers_are_right_is_an_assumption(tmp_path):
    found = adapted(tmp_path, "FeedForward", NETWORK)
    assert [one for one in found.assumed if "assumed starting=kaiming, which" in one]
    with pytest.raises(Unclear, match=r"--give starting=kaiming .* \(tried\)"):
        adapted(tmp_path, "FeedForward", NETWORK, strict=True)


def test_no_word_is_named_for_a_mistake(tmp_path):
    with pytest.raises(Unclear, match="none gives the numbers of the reference"):
        adapted(tmp_path, "FeedForward", NETWORK.replace("(x).relu()", "(x).relu().mean(1, True)"))
