"""Names of decoder-only models, and of their gates, that say what numbers alone do not."""

from pathlib import Path

import pytest

from attentest.targets import file_modules
from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.numbers.linears import Linear
from attentest.targets.language_models.numbers.networks import _says_otherwise
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.profiles import nearest, spoken
from attentest.targets.language_models.recognition import is_language_model
from attentest.targets.members import members
from attentest_spec import Place
from attentest_spec.profiles import PROFILES

SOURCE = """
import torch
from torch import nn
from torch.nn import functional as F


class Layer(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.merge = nn.Linear(d_model, d_model)
        self.rise, self.fall = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in parts)
        scores = q @ k.mT / (c // self.heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        x = x + self.merge((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.fall(F.relu(self.rise(self.norm2(x))))


class OwnModel(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList([Layer(d_model, n_heads) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids, mask=None):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(self.norm(x))
"""


def saved(folder: Path, name: str) -> Path:
    """Return a file with the model of that name."""
    path = folder / "family.py"
    path.write_text(SOURCE.replace("OwnModel", name), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("MiniLlamaModel", True),
        ("GPTStyleModel", True),
        ("OwnModel", False),  # an encoder has a mask, and may have a head
        ("GPTMaskedLM", False),
        ("LlamaEncoder", False),
        ("BidirectionalQwen", False),
    ],
)
def test_family_in_a_name_says_what_a_model_with_a_given_mask_is(
    name: str, is_one: bool, tmp_path: Path
) -> None:
    made = getattr(file_modules.load(saved(tmp_path, name)), name)
    assert is_language_model(made, Reading(), name) is is_one


@pytest.mark.parametrize(("name", "is_one"), [("BertModel", False), ("TextModel", True)])
def test_body_with_a_cache_that_fills_in_tokens_is_no_decoder_only_model(
    name: str, is_one: bool, tmp_path: Path
) -> None:
    path = saved(tmp_path, name)
    body = path.read_text(encoding="utf-8").replace("self.head(self.norm(x))", "self.norm(x)")
    body = body.replace("(self, ids, mask=None)", "(self, ids, mask=None, past_key_values=None)")
    path.write_text(body, encoding="utf-8")
    assert is_language_model(getattr(file_modules.load(path), name), Reading(), name) is is_one


def test_model_of_a_family_is_judged_with_its_head(tmp_path: Path) -> None:
    facts = {one.name: one for one in members(str(saved(tmp_path, "MiniLlamaModel"))) or []}
    assert facts["MiniLlamaModel"].component == "language_model"
    assert facts["Layer"].inside == "MiniLlamaModel"


@pytest.mark.parametrize(
    ("gate", "inner", "otherwise"),
    [
        ("up_proj", "gate_proj", True),
        ("w_value", "w_gate", True),
        ("gate_proj", "up_proj", False),
        ("w3", "w1", False),  # names that say nothing
        ("up_proj", "w1", False),
        ("gate_up_proj", "gate_up_proj", False),
    ],
)
def test_names_of_gates_are_those_of_the_other_map(gate: str, inner: str, otherwise: bool) -> None:
    maps = {
        role: Linear(View(Place(f"gate.blocks.*.{name}.weight"), None), None, None)  # type: ignore[arg-type]
        for role, name in (("gate", gate), ("inner", inner))
    }
    assert _says_otherwise(maps) is otherwise


def test_choices_that_differ_from_a_profile_are_listed_the_unusual_first() -> None:
    llama = {**PROFILES["llama"].choices, "rotary_base": 10000.0, "rms_cast": "unspecified"}
    assert (nearest(llama), spoken(llama, "llama")) == ("llama", "llama")
    outside = {**llama, "projection_bias": "present", "rms_epsilon_place": "added-to-rms"}
    listed = "llama with rms_epsilon_place=added-to-rms, projection_bias=present"
    assert spoken(outside, "llama") == listed
    assert spoken({**PROFILES["gpt2"].choices, "norm_variance": "unbiased"}, "gpt2") == (
        "gpt2 with norm_variance=unbiased"
    )
