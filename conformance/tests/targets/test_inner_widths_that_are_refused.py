"""Decoder-only models whose constructors refuse a network that is narrower than the model.

The class is written for these tests.
"""

import pytest
from mistaken_code import adapted, asked, broken, edited

CODE = """
from torch import nn


class Text(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        if d_ff < d_model:
            raise ValueError("d_ff must be at least d_model")
        self.table, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, n_heads, d_ff, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, n_layers, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, tokens):
        hidden = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        x = self.table(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(self.norm(self.layers(x, hidden)))
"""


@pytest.mark.parametrize(
    "wrong", ["d_ff < d_model", pytest.param("d_ff % d_model", marks=pytest.mark.proof)]
)
def test_model_is_built_with_four_times_its_width(tmp_path, wrong):
    backend = adapted(tmp_path, "Text", edited(CODE, ("d_ff < d_model", wrong)))
    assert any("four times the model's" in one for one in backend.assumed)
    assert not broken(backend, "language_model.formula")


@pytest.mark.proof
def test_map_of_another_width_is_still_asked_about(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(edited(CODE, ("nn.Linear(d_model, vocab_size)", "nn.Linear(d_ff, vocab_size)")))
    assert "could not be" in asked(f"{file}:Text")
