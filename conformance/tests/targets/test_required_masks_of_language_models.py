"""Masks of padding that no call of a decoder-only model may leave out."""

from pathlib import Path
from typing import Any

import pytest

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.inference import called, infer
from attentest.targets.language_models.recognition import is_language_model, takes_tokens_alone

SOURCE = """
import torch
from torch import nn


class TextModel(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)
        self.heads = n_heads
        self.layers = nn.ModuleList([nn.Linear(d_model, 4 * d_model) for _ in range(n_layers)])
        self.logits = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids, attention_mask):
        x = self.tokens(ids)
        keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        keep = keep & attention_mask[:, None, :].bool()
        for layer in self.layers:
            q, k, v, o = layer(x).chunk(4, dim=-1)
            scores = (q @ k.mT).masked_fill(~keep, -1e9)
            x = x + scores.softmax(-1) @ v * o
        return self.logits(x)
"""
KEEP = "attention_mask[:, None, :].bool()"


def model(folder: Path, right: str = "", wrong: str = "") -> Any:
    """Return the class of a model, with `wrong` for `right`."""
    assert right in SOURCE
    path = folder / "own.py"
    path.write_text(SOURCE.replace(right, wrong) if right else SOURCE, encoding="utf-8")
    return file_modules.load(path).TextModel


def test_model_with_a_required_mask_takes_tokens_alone(tmp_path: Path) -> None:
    assert is_language_model(model(tmp_path), Reading(), "TextModel")


@pytest.mark.parametrize(("meant", "form"), [("", "mask_of_all"), ("~", "~mask_of_all")])
def test_every_call_gets_a_mask_that_hides_nothing(meant: str, form: str, tmp_path: Path) -> None:
    made = model(tmp_path, KEEP, f"({meant}attention_mask[:, None, :].bool())")
    _, _, call = called(made, "TextModel", Reading())
    assert (call.required, call.required_form) == ("attention_mask", form)
    assert f'given["attention_mask"] = {form}' in call.source()


def test_mask_that_hides_nothing_is_not_required(tmp_path: Path) -> None:
    made = model(tmp_path, KEEP, "True")
    _, _, call = called(made, "TextModel", Reading())
    assert not call.required


def test_mistake_in_a_model_with_a_required_mask_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        infer(model(tmp_path), "TextModel", Reading())


def test_argument_that_is_annotated_as_none_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    text = SOURCE.replace(KEEP, "True").replace("attention_mask):", "state: None):")
    path.write_text(text, encoding="utf-8")
    made = file_modules.load(path).TextModel
    assert takes_tokens_alone(made)
    _, _, call = called(made, "TextModel", Reading())
    assert call.fixed == {"state": None}
