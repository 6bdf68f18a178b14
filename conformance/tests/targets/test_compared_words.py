"""Questions about a text argument name the words that the constructor compares it with."""

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.objects.compared_words import names_file

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


FILED = """
import json

from torch import nn


class Settings:
    def __init__(self, config_path):
        self.opened = json.load(open(config_path))
        self.dim, self.hidden = self.opened["dim"], self.opened["hidden"]


class FeedForward(nn.Module):
    def __init__(self, config: Settings):
        super().__init__()
        self.up, self.down = nn.Linear(config.dim, 8), nn.Linear(8, config.dim)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_no_number_is_tried_as_the_name_of_a_file(tmp_path):
    with pytest.raises(Unclear) as question:
        adapted(tmp_path, "FeedForward", FILED)
    assert "what config_path is" in str(question.value)
    assert "--give config_path=" not in str(question.value)
    assert [names_file(one) for one in ("outputDir", "filename", "profile")] == [True, True, False]
