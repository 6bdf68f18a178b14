"""Classes that pool the output of their layers: padding that changes it is named."""

from pathlib import Path

import pytest
from mistaken_code import adapted
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x, pads):
        x = self.norm1(x + self.attention(x, x, x, key_padding_mask=pads)[0])
        return self.norm2(x + self.down(torch.relu(self.up(x))))


class Classifier(nn.Module):
    def __init__(self, vocab_size, width, heads, inner, layers, labels):
        super().__init__()
        self.words = nn.Embedding(vocab_size, width)
        self.layers = nn.ModuleList(Block(width, heads, inner) for _ in range(layers))
        self.head = nn.Linear(width, labels)

    def forward(self, ids):
        x, pads = self.words(ids), ids == 0
        for layer in self.layers:
            x = layer(x, pads)
        keep = (~pads)[..., None].to(x)
        return self.head(x)
"""
MEAN = "self.head((x * keep).sum(1) / keep.sum(1))"
MASKED = CODE.replace("def forward(self, ids):", "def forward(self, ids, attention_mask):").replace(
    "ids == 0", "attention_mask == 0"
)
UNJUDGED = "what Classifier makes of the output of its layers"
DECLARED = {"embedding_scale": "none", "positional_encoding": "none"}
COUNTED = "which changes with padding"


def said(folder: Path, code: str) -> str:
    return "\n".join(adapted(folder, "Classifier", code).assumed)


@share(4, rest=1)
@pytest.mark.parametrize("code", [CODE, MASKED], ids=["ids", "mask"])
@pytest.mark.parametrize("pooled", ["self.head(x.mean(1))", "self.head(x).amax(1)"])
def test_a_mean_that_counts_padding_is_named(code: str, pooled: str, tmp_path: Path) -> None:
    assert COUNTED in said(tmp_path, code.replace("self.head(x)", pooled))


@share(8, rest=1)
@pytest.mark.parametrize("code", [CODE, MASKED], ids=["ids", "mask"])
@pytest.mark.parametrize(
    "pooled",
    [
        "self.head(x)",
        MEAN,
        f"{{'logits': {MEAN}, 'states': x}}",
        "self.head(torch.tanh(x[:, 0]))",
        "self.head(x.masked_fill(keep == 0, -torch.inf).amax(1))",
        "self.head(x)[torch.arange(len(x)), keep[..., 0].sum(1).long() - 1]",
        "self.head(torch.dropout(x, 0.5, True).mean(1))",
    ],
)
def test_sound_outputs_do_not_change_with_padding(code: str, pooled: str, tmp_path: Path) -> None:
    words = said(tmp_path, code.replace("self.head(x)", pooled))
    assert UNJUDGED in words
    assert COUNTED not in words


@pytest.mark.proof
def test_layers_that_hide_no_padding_say_nothing_of_it(tmp_path: Path) -> None:
    seeing = CODE.replace("pads = self.words(ids), ids == 0", "pads = self.words(ids), None")
    seeing = seeing.replace("keep = (~pads)[..., None].to(x)", "")
    words = said(tmp_path, seeing.replace("self.head(x)", "self.head(x.mean(1))"))
    assert UNJUDGED in words
    assert COUNTED not in words


@pytest.mark.proof
def test_a_strict_reading_asks_about_padding(tmp_path: Path) -> None:
    code = CODE.replace("self.head(x)", "self.head(x.mean(1))")
    with pytest.raises(Unclear, match=COUNTED):
        adapted(tmp_path, "Classifier", code, strict=True, choices=DECLARED)
