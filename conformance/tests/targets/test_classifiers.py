"""Classifiers over an encoder whose number of classes is a required argument."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt.reading import Unclear

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


@pytest.mark.parametrize("own", ["tagset_size", "pred_len", "num_outputs"])
def test_number_of_tags_or_steps_is_no_size_of_the_encoder(own: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Classifier", CODE.replace("num_classes", own))
    assert f"{own}=3" in "\n".join(backend.understood)


@pytest.mark.proof
def test_classifier_that_forgets_a_residual_sum_does_not_pass(tmp_path: Path) -> None:
    right, wrong = "self.ff(x) + x", "self.ff(x)"
    assert asked_or_broken(tmp_path, "Classifier", CODE, right, wrong, FORMULA)


LOOP = """states = self.tokens(x) + self.positions(places)
        for block in self.blocks:
            states = block(states)
"""
FLAT = (
    CODE.replace("states.mean(dim=1)", "states.flatten(1)")
    .replace("nn.Linear(emb, num_classes)", "nn.Linear(seq_length * emb, num_classes)")
    .replace("nn.Sequential(*[Block", "nn.ModuleList([Block")
    .replace("states = self.blocks(self.tokens(x) + self.positions(places))\n", LOOP)
)
REFUSED = CODE.replace("num_classes):", "num_classes=None):").replace(
    "self.tokens =", "assert num_classes is not None\n        self.tokens ="
)
UNNAMED = CODE.replace(
    "emb, heads, depth, seq_length, num_tokens, num_classes):",
    "heads, depth, seq_length, num_tokens, num_classes, emb_channels_of_rows=32, groups=7):",
).replace("self.tokens =", "emb = emb_channels_of_rows\n        self.tokens =")


@pytest.mark.parametrize("code", [FLAT, REFUSED, UNNAMED], ids=["flat", "refused", "unnamed"])
def test_head_of_all_rows_and_sizes_with_defaults_are_read(tmp_path: Path, code: str) -> None:
    assert broken(adapted(tmp_path, "Classifier", code), FORMULA) == []


@pytest.mark.proof
@pytest.mark.parametrize("code", [FLAT, UNNAMED], ids=["flat", "unnamed"])
def test_residual_sum_that_such_a_classifier_lacks_is_detected(tmp_path: Path, code: str) -> None:
    wrong = code.replace("self.ff(x) + x", "self.ff(x)")
    assert broken(adapted(tmp_path, "Classifier", wrong), FORMULA)


def test_head_that_no_length_fits_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="could not be called"):
        adapted(tmp_path, "Classifier", FLAT.replace("seq_length * emb,", "seq_length * emb + 1,"))


@pytest.mark.proof
def test_constant_length_is_that_of_all_calls(tmp_path: Path) -> None:
    whole = "self.tokens(x) + self.positions.weight"
    code = FLAT.replace("self.tokens(x) + self.positions(places)", whole)
    code = code.replace("nn.Embedding(seq_length, emb)", "nn.Embedding(64, emb)")
    code = code.replace("states.flatten(1)", "states.mean(1)").replace("seq_length * emb,", "emb,")
    assert broken(adapted(tmp_path, "Classifier", code), FORMULA) == []
    assert asked_or_broken(tmp_path, "Classifier", code, "self.ff(x) + x", "self.ff(x)", FORMULA)
