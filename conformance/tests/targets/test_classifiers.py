"""Classifiers over an encoder whose number of classes is a required argument."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, emb, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(emb, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(emb), nn.LayerNorm(emb)
        self.ff = nn.Sequential(nn.Linear(emb, 4 * emb), nn.ReLU(), nn.Linear(4 * emb, emb))

    def forward(self, x):
        x = self.norm1(self.attention(x, x, x, need_weights=False)[0] + x)
        return self.norm2(self.ff(x) + x)


class Classifier(nn.Module):
    def __init__(self, emb, heads, depth, seq_length, num_tokens, num_classes):
        super().__init__()
        self.tokens = nn.Embedding(num_tokens, emb)
        self.positions = nn.Embedding(seq_length, emb)
        self.blocks = nn.Sequential(*[Block(emb, heads) for _ in range(depth)])
        self.head = nn.Linear(emb, num_classes)

    def forward(self, x):
        places = torch.arange(x.shape[1], device=x.device)
        states = self.blocks(self.tokens(x) + self.positions(places))
        return self.head(states.mean(dim=1)).log_softmax(dim=1)
"""
FORMULA = "encoder.formula"


def test_number_of_classes_is_no_size_of_the_encoder(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Classifier", CODE, component="encoder")
    assert "num_classes=3" in "\n".join(backend.understood)
    assert broken(backend, FORMULA) == []


@pytest.mark.proof
def test_classifier_that_forgets_a_residual_sum_does_not_pass(tmp_path: Path) -> None:
    right, wrong = "self.ff(x) + x", "self.ff(x)"
    assert asked_or_broken(tmp_path, "Classifier", CODE, right, wrong, FORMULA)
