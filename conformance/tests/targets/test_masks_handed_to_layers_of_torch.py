"""Masks that a class gets, or makes of lengths, for a stack of torch: they are judged as well."""

import pytest
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

TEXTS = """
import torch
from torch import nn


class Texts(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len):
        super().__init__()
        self.rows, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers)
        self.head = nn.Linear(d_model, 2)

    def forward(self, input_ids, attention_mask):
        x = self.rows(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        x = self.layers(x, src_key_padding_mask=attention_mask == 0)
        seen = attention_mask.unsqueeze(-1)
        return self.head((x * seen).sum(1) / seen.sum(1))
"""
LENGTHS = edited(
    TEXTS,
    ("attention_mask):", "text_lengths):"),
    (
        "        seen = attention_mask",
        "        seen = torch.arange(input_ids.shape[1]) < text_lengths[:, None]\n"
        "        seen = seen",
    ),
    ("attention_mask == 0", "hidden"),
    (
        "        x = self.layers",
        "        hidden = torch.arange(input_ids.shape[1]) >= text_lengths[:, None]\n"
        "        x = self.layers",
    ),
)
CLAUSES = "encoder.formula", "encoder.padding-invariance"


@pytest.mark.parametrize(
    ("source", "mask", "right", "wrong"),
    [
        (TEXTS, "mask=attention_mask", "attention_mask == 0", "attention_mask == 1"),
        (LENGTHS, "mask=text_lengths", ">= text_lengths", "> text_lengths"),
        (LENGTHS, "mask=text_lengths", ">= text_lengths", "< text_lengths"),
    ],
)
def test_mask_that_a_class_hands_to_its_stack_is_judged(tmp_path, source, mask, right, wrong):
    backend = adapted(tmp_path, "Texts", source)
    assert mask in backend.summary
    assert not any("makes of" in one and "mask" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []
    try:
        mistaken = adapted(tmp_path, "Texts", edited(source, (right, wrong)))
    except Unclear:
        return
    assert broken(mistaken, *CLAUSES)
