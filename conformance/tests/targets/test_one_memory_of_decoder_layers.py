"""Decoder layers that are called with a value and a key: both are the memory."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

LAYERS = (
    (SUPPORT / "wild_encoders" / "value_key_query.py").read_text()
    + """

class DecoderBlock(nn.Module):
    def __init__(self, embed_size, heads, forward_expansion, dropout):
        super().__init__()
        self.attention, self.norm = SelfAttention(embed_size, heads), nn.LayerNorm(embed_size)
        self.transformer_block = TransformerBlock(embed_size, heads, dropout, forward_expansion)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, value, key, src_mask, trg_mask):
        attention = self.attention(x, x, x, trg_mask)
        query = self.dropout(self.norm(attention + x))
        return self.transformer_block(value, key, query, src_mask)
"""
)

CLAUSES = ["decoder.layer-formula", "decoder.shapes"]


def test_value_and_key_of_a_decoder_layer_are_one_memory(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderBlock", LAYERS)
    assert any("value, key are one memory" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, *CLAUSES) == []


def test_either_of_value_and_key_may_be_named_as_the_memory(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderBlock", LAYERS, arguments={"memory": "value"})
    assert any("key, value are one memory" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "self.transformer_block(value, key, query, src_mask)",
            "self.transformer_block(value, x, query, src_mask)",
        ),
        (
            "self.transformer_block(value, key, query, src_mask)",
            "self.transformer_block(value, key, query, trg_mask)",
        ),
        ("self.attention(x, x, x, trg_mask)", "self.attention(x, value, x, trg_mask)"),
        ("self.norm(attention + x)", "self.norm(attention)"),
    ],
)
def test_mistake_in_a_decoder_layer_of_value_and_key_does_not_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "DecoderBlock", LAYERS, right, wrong, *CLAUSES)
