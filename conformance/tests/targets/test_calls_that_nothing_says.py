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


METHODS = """
import torch
from torch import nn


class Transformer(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads, encoder_num, d_internal):
        super().__init__()
        self.source = nn.Embedding(src_vocab, d_model)
        self.target = nn.Embedding(tgt_vocab, d_model)
        self.body = nn.Transformer(d_model, heads, encoder_num, encoder_num, d_internal, 0.0)
        self.proj = nn.Linear(d_model, tgt_vocab)

    def encode(self, src, src_mask):
        return self.body.encoder(self.source(src), src_mask.no_such_method())

    def decode(self, memory, src_mask, tgt, tgt_mask):
        return self.body.decoder(self.target(tgt), memory, tgt_mask, src_mask)
"""


@pytest.mark.proof
def test_encode_and_decode_that_fail_are_the_reason_of_the_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="no_such_method") as caught:
        adapted(tmp_path, "Transformer", METHODS)
    assert "no method forward" not in str(caught.value)
