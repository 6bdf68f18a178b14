"""Decoder-only models whose sizes have names of their own: their uses say what they are."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear
from attentest.targets.language_models.construction.uses import size_by_use
from attentest.targets.whole import AdaptedWhole

SOURCE = """
import torch
from torch import nn


class Symbols(nn.Embedding):
    def forward(self, x, back=False):
        return x @ self.weight.T if back else super().forward(x)


class Layer(nn.Module):
    def __init__(self, voices, columns):
        super().__init__()
        self.first, self.second = nn.LayerNorm(columns), nn.LayerNorm(columns)
        self.mix = nn.MultiheadAttention(columns, voices, batch_first=True)
        self.net = nn.Sequential(
            nn.Linear(columns, 4 * columns), nn.GELU(), nn.Linear(4 * columns, columns)
        )

    def forward(self, x, hidden):
        y = self.first(x)
        x = x + self.mix(y, y, y, attn_mask=hidden, need_weights=False)[0]
        return x + self.net(self.second(x))


class Speaker(nn.Module):
    def __init__(self, amount, pad_idx, types_known, steps, voices, columns, bidirectional=True):
        super().__init__()
        self.pad_idx, self.bidirectional = pad_idx, bidirectional
        self.symbols = Symbols(types_known, columns)
        self.positions = nn.Embedding(steps, columns)
        self.layers = nn.ModuleList(Layer(voices, columns) for _ in range(amount))
        self.norm = nn.LayerNorm(columns)

    def forward(self, x, past=None):
        length = x.shape[1]
        hidden = (x == self.pad_idx)[:, None].expand(-1, length, -1)
        if not self.bidirectional:
            hidden = hidden | torch.ones(length, length, dtype=torch.bool).triu(1)
        hidden = hidden.repeat_interleave(self.layers[0].mix.num_heads, 0)
        x = self.symbols(x) + self.positions(torch.arange(length))
        for layer in self.layers:
            x = layer(x, hidden)
        x = self.symbols(self.norm(x), back=True)
        return x if self.training else (x, [None])
"""
FORMULA = "language_model.formula"
SPEAKER = edited(SOURCE, ("types_known", "known"))


def test_sizes_are_those_of_the_modules_that_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "speaker_of_sizes.py"
    path.write_text(SPEAKER)
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    made = module.Speaker
    names = ["amount", "known", "steps", "voices", "columns", "pad_idx"]
    sizes = ["layers", "target_vocabulary", "max_length", "heads", "d_model", ""]
    assert [size_by_use(made, one) for one in names] == sizes
    assert size_by_use(made, "columns", default=8) == "d_model"
    assert size_by_use(made, "columns", default=True) == ""


@pytest.mark.proof
def test_model_whose_sizes_have_other_names_is_read(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Speaker", SPEAKER)
    assert isinstance(backend, AdaptedWhole)
    said = "\n".join(backend.assumed)
    assert "assumed pad_idx=-100" in said
    assert "assumed bidirectional=False" in said
    assert broken(backend, FORMULA, "language_model.gradient") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("triu(1)", "triu(2)"), ("x = x + self.mix(", "x = self.mix("), ("self.norm(x)", "x")],
)
def test_mistake_of_a_model_with_other_names_is_no_pass(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert asked_or_broken(tmp_path, "Speaker", SPEAKER, right, wrong, FORMULA)


def test_width_that_does_not_follow_the_model_is_named(tmp_path: Path) -> None:
    code = edited(SPEAKER, ("nn.Linear(columns, 4 * columns)", "nn.Linear(128, 4 * columns)"))
    with pytest.raises(Unclear, match="a width of one of its parts does not follow"):
        adapted(tmp_path, "Speaker", code)
