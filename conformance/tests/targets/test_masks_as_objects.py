"""Masks that are objects of a class, made with the tensor of the mask."""

from pathlib import Path
from typing import Any

import pytest
import torch
from proof import share

import attentest
from attentest.targets import file_modules
from attentest.targets.adapt.objects.mask_holders import mask_holders
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.caching import candidates
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.inference import called, infer
from attentest.targets.language_models.surrounded.states import building_of_states

SOURCE = """
from __future__ import annotations

import math
from typing import Optional

import torch
from torch import Tensor, nn


class KeyMask:
    def __init__(self, keep: Tensor) -> None:
        if keep.dtype != torch.bool:
            raise ValueError("a mask is boolean")
        self.keep = keep[:, None]


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def attend(self, x, keep):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~keep[:, None], -1e9).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x, keep):
        x = x + self.attend(self.first(x), keep)
        return x + self.narrow(self.wide(self.second(x)).relu())


class TextModel(nn.Module):
    def __init__(self, n_pieces, width, n_attention_heads, n_hidden_layers, inner, n_positions):
        super().__init__()
        self.pieces, self.places = nn.Embedding(n_pieces, width), nn.Embedding(n_positions, width)
        layers = [Layer(width, n_attention_heads, inner) for _ in range(n_hidden_layers)]
        self.layers, self.norm = nn.ModuleList(layers), nn.LayerNorm(width)
        self.logits = nn.Linear(width, n_pieces, bias=False)

    def forward(self, ids: Tensor, attention_mask: KeyMask):
        x = self.pieces(ids) + self.places.weight[: ids.shape[1]]
        keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() & attention_mask.keep
        for layer in self.layers:
            x = layer(x, keep)
        return self.logits(self.norm(x))
"""


def model(folder: Path, right: str = "", wrong: str = "") -> Any:
    """Return the class of a model, with `wrong` for `right`."""
    assert right in SOURCE
    path = folder / "own.py"
    path.write_text(SOURCE.replace(right, wrong) if right else SOURCE, encoding="utf-8")
    return file_modules.load(path).TextModel


def test_mask_is_made_of_the_class_that_its_argument_names(tmp_path: Path) -> None:
    _, _, call = called(model(tmp_path), "TextModel", Reading())
    assert 'given["attention_mask"] = KeyMask(mask_of_all)' in call.source()
    assert list(call.space) == ["KeyMask"]


def test_mask_that_may_be_none_names_its_class_too(tmp_path: Path) -> None:
    made = model(tmp_path, "attention_mask: KeyMask", "attention_mask: Optional[KeyMask]")
    assert [one.__name__ for one in mask_holders(made.forward).values()] == ["KeyMask"]


def test_classes_that_hold_no_one_tensor_are_no_masks(tmp_path: Path) -> None:
    other = model(tmp_path, "keep: Tensor) ->", "keep: Tensor, causal: bool) ->")
    assert not mask_holders(other.forward)
    assert not mask_holders(model(tmp_path, "attention_mask: KeyMask", "mask: Tensor").forward)
    assert not mask_holders(torch.nn.MultiheadAttention.forward)


def test_model_with_a_mask_as_an_object_is_read(tmp_path: Path) -> None:
    found = infer(model(tmp_path), "TextModel", Reading())
    assert found.choices["positional_encoding"] == "learned"
    assert found.mistake is None


def test_mistaken_model_with_a_mask_as_an_object_is_not_taken(tmp_path: Path) -> None:
    mistaken = model(tmp_path, "/ math.sqrt(q.shape[-1])", "/ q.shape[-1]")
    try:
        found = infer(mistaken, "TextModel", Reading())
    except Unclear:
        return
    assert found.mistake is not None


STEPS = (
    ("attention_mask: KeyMask):", "attention_mask: KeyMask, cache=None):"),
    ("return self.logits(self.norm(x))", "return self.logits(self.norm(x)), [x]"),
)


def test_steps_with_a_cache_get_a_mask_of_all_tokens(tmp_path: Path) -> None:
    source = SOURCE
    for right, wrong in STEPS:
        source = source.replace(right, wrong)
    path = tmp_path / "own.py"
    path.write_text(source, encoding="utf-8")
    built, _, call = called(file_modules.load(path).TextModel, "TextModel", Reading())
    found = list(candidates(built(PROBE).eval(), call, built.space))
    assert found
    assert 'given["attention_mask"] = KeyMask(mask_of_all)' in found[0].source(call)


RESULT = """

class States:
    def __init__(self, every):
        self.every = every

    @property
    def after(self):
        return self.every[-1]

    @property
    def before(self):
        return self.every[0]

    @property
    def shapes(self):
        raise ValueError("no shapes")
"""


def test_states_are_those_of_the_property_that_depends_on_earlier_tokens(tmp_path: Path) -> None:
    embedded = "x = self.pieces(ids) + self.places.weight[: ids.shape[1]]"
    source = SOURCE.replace(embedded, embedded + "\n        every = [x]")
    source = source.replace("self.logits(self.norm(x))", "States([*every, self.norm(x)])")
    source = source.replace("        self.logits = nn.Linear(width, n_pieces, bias=False)\n", "")
    path = tmp_path / "own.py"
    path.write_text(source + RESULT, encoding="utf-8")
    made = building_of_states(file_modules.load(path).TextModel, "TextModel", Reading())
    assert "\"pieces.weight\", 'after', attribute=True)" in made.expression


ENCODER = SOURCE.replace(
    "keep = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() & attention_mask.keep",
    "keep = attention_mask.keep",
).replace("class TextModel", "class TextEncoder")
ENCODER = ENCODER.replace("self.logits(self.norm(x))", "self.norm(x)").replace(
    "        self.logits = nn.Linear(width, n_pieces, bias=False)\n", ""
)


def checked(folder: Path, source: str) -> Any:
    """Return the report on the encoder of `source`."""
    path = folder / "own.py"
    path.write_text(source, encoding="utf-8")
    return attentest.check(f"{path}:TextEncoder", clauses=CLAUSES)


CLAUSES = ["encoder.formula", "encoder.padding-invariance"]


@pytest.mark.proof
def test_encoder_with_a_mask_as_an_object_is_judged(tmp_path: Path) -> None:
    assert checked(tmp_path, ENCODER).conforms


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("self.keep = keep[:, None]", "self.keep = ~keep[:, None]"), ("math.sqrt(q", "(q")],
)
def test_mistaken_encoder_with_a_mask_as_an_object_is_found(
    right: str, wrong: str, tmp_path: Path
) -> None:
    assert right in ENCODER
    try:
        assert not checked(tmp_path, ENCODER.replace(right, wrong)).conforms
    except Unclear:
        return


@pytest.mark.proof
def test_written_adapter_makes_masks_of_their_class(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(ENCODER, encoding="utf-8")
    made = attentest.adapted(f"{path}:TextEncoder")
    assert "masks['attention_mask'] = KeyMask(" in made.written().replace('"', "'")
