"""Whole models that return states beside their logits."""

from pathlib import Path

import pytest

import attentest

MODEL = """
import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads, layers, d_ff, pad=1):
        super().__init__()
        self.pad = pad
        self.src, self.tgt = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.stacks = nn.Transformer(d_model, heads, layers, layers, d_ff, 0.1, batch_first=True)
        self.head = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt):
        n, hidden = tgt.shape[1], src == self.pad
        later = torch.ones(n, n, dtype=torch.bool, device=src.device).triu(1)
        entering, target = self.src(src), self.tgt(tgt)
        memory = self.stacks.encoder(entering, src_key_padding_mask=hidden)
        states = self.stacks.decoder(
            target, memory, tgt_mask=later, tgt_key_padding_mask=tgt == self.pad,
            memory_key_padding_mask=hidden,
        )
        return entering, memory, target, states, self.head(states)
"""
RESULT = "return entering, memory, target, states, self.head(states)"
PARTS = [
    (RESULT, ""),
    ("return target, states", "head maps them"),
    ('return {"target": target, "states": states}', "head maps them"),
]
"""Results of the model, with the words of their inference, "" for none."""


@pytest.mark.proof
@pytest.mark.parametrize(("result", "said"), PARTS)
def test_output_is_that_with_logits_or_else_the_states_of_both_sides(
    result: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "own.py").write_text(MODEL.replace(RESULT, result))
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:Seq2Seq")
    words = "\n".join((*backend.understood, *backend.assumed, backend.summary))
    assert "computes the same whatever the tokens of its source are" not in words
    assert ("returns states" in words) == bool(said)
    assert said in words
