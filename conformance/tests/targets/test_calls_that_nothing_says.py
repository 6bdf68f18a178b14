"""Modules without a forward, and models with other inputs than tokens: true questions."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear

SOURCE = """
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.width = d_model


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.encoder = nn.TransformerEncoderLayer(d_model, 2)


class DecisionTransformer(Transformer):
    def forward(self, timesteps, states, actions, returns_to_go):
        return self.encoder(self.embed(timesteps) + states + actions + returns_to_go)
"""


@pytest.mark.parametrize("name", ["PositionalEncoding", "Transformer"])
def test_a_module_without_a_forward_is_asked_about_as_that(name: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=f"{name} has no method forward"):
        adapted(tmp_path, name, SOURCE)


def test_a_model_with_other_inputs_is_not_promised_a_value_for_them(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="it is another kind of model") as caught:
        adapted(tmp_path, "DecisionTransformer", SOURCE)
    assert "ROLE" not in str(caught.value)
