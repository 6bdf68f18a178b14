"""Decoder layers without a memory, as those of decoder-only models are called."""

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

LAYER = """
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.network = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model))
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, attn_mask=None, padding_mask=None):
        y = self.first(x)
        y, _ = self.attention(y, y, y, attn_mask=attn_mask, key_padding_mask=padding_mask)
        x = x + y
        return x + self.network(self.second(x))
"""
FORMULA = "encoder.layer-formula"


def test_decoder_layer_of_one_text_is_judged_as_a_layer_of_one_sequence(tmp_path):
    backend = adapted(tmp_path, "DecoderLayer", LAYER)
    assert "encoder_layer" in backend.recipes
    assert not broken(backend, FORMULA)


def test_decoder_layer_of_one_text_without_a_residual_connection_is_detected(tmp_path):
    mistaken = LAYER.replace("x = x + y", "x = y")
    assert broken(adapted(tmp_path, "DecoderLayer", mistaken), FORMULA)


@pytest.mark.proof
def test_decoder_layer_with_a_second_attention_and_no_memory_is_one_question(tmp_path):
    second = "        self.cross = nn.MultiheadAttention(d_model, n_heads, batch_first=True)\n"
    code = LAYER.replace("        self.network", second + "        self.network")
    with pytest.raises(Unclear, match="no input for a memory"):
        adapted(tmp_path, "DecoderLayer", code)
