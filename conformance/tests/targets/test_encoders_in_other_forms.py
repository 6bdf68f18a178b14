"""Encoders with ids (L, B), labels, layers that are no parts, masked tokens, rounded constants."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.mixing = nn.MultiheadAttention(width, heads)
        self.first = nn.LayerNorm(width)
        self.second = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x, hidden):
        x = self.first(x + self.mixing(x, x, x, key_padding_mask=hidden)[0])
        return self.second(x + self.down(self.up(x).relu()))


class TextModel(nn.Module):
    def __init__(self, vocab_size, width=16, heads=4, inner=32, depth=2, max_len=64, pad_id=0):
        super().__init__()
        self.pad = pad_id
        self.words = nn.Embedding(vocab_size, width, padding_idx=pad_id)
        self.places = nn.Embedding(max_len, width)
        self.layers = nn.ModuleList([Layer(width, heads, inner) for _ in range(depth)])
        self.out = nn.Linear(width, 3)

    def forward(self, ids):
        hidden = (ids == self.pad).t()
        x = self.words(ids) + self.places(torch.arange(len(ids)))[:, None]
        for layer in self.layers:
            x = layer(x, hidden)
        return self.out(x[0])
"""


def test_ids_with_the_sequence_first_give_a_mask_of_texts(tmp_path: Path) -> None:
    """A mask of ids (L, B) that is turned to (B, L) is right."""
    assert not broken(adapted(tmp_path, "TextModel", CODE), "encoder.padding-invariance")


@pytest.mark.proof
def test_an_inverted_mask_of_ids_with_the_sequence_first_is_reported(tmp_path: Path) -> None:
    """It hides the tokens, and not their padding."""
    wrong = "ids == self.pad", "ids > 0"
    assert asked_or_broken(tmp_path, "TextModel", CODE, *wrong, "encoder.formula")


def test_layers_in_a_plain_list_are_asked_about(tmp_path: Path) -> None:
    """No optimiser trains them, whatever the name of the class is."""
    layers = "nn.ModuleList([Layer(width, heads, inner) for _ in range(depth)])"
    file = tmp_path / "listed.py"
    file.write_text(edited(CODE, (layers, layers[14:-1]), ("class TextModel", "class Bertie")))
    assert {one.name: one.component for one in members(str(file))}["Bertie"] == "encoder"
    assert "layers of Bertie is a plain list" in asked(f"{file}:Bertie")


def test_labels_of_a_loss_are_no_second_text(tmp_path: Path) -> None:
    """A classifier that returns its loss has to be given labels, which nothing else reads."""
    loss = "return nn.functional.cross_entropy(self.out(x[0]), targets)"
    source = edited(
        CODE, ("return self.out(x[0])", loss), ("forward(self, ids)", "forward(self, ids, targets)")
    )
    file = tmp_path / "labelled.py"
    file.write_text(source)
    assert {one.name: one.component for one in members(str(file))}["TextModel"] == "encoder"
    read = edited(source, ("self.words(ids)", "self.words(ids) + self.words(targets)"))
    with pytest.raises(Unclear):
        adapted(tmp_path, "TextModel", read)


def test_a_model_of_masked_tokens_is_no_decoder(tmp_path: Path) -> None:
    """Its file says that it fills in tokens; one that speaks of later tokens is read as that."""
    out = ("self.out = nn.Linear(width, 3)", "self.out = nn.Linear(width, vocab_size)")
    source = edited(
        CODE, out, ("class TextModel", "class ResidueLM"), ("self.out(x[0])", "self.out(x)")
    )
    for said, component in (("<mask>", "encoder"), ("<mask>, causal", "language_model")):
        file = tmp_path / f"named_{component}.py"
        file.write_text(f"KNOWN = {said!r}\n{source}")
        found = {one.name: one.component for one in members(str(file))}
        assert found["ResidueLM"] == component


SQUARE = edited(
    CODE,
    (", inner=32", ""),
    ("nn.Linear(width, inner", "nn.Linear(width, width"),
    ("nn.Linear(inner, width)", "nn.Linear(width, width)"),
    (", inner)", ")"),
    ("(ids == self.pad).t()", "ids == self.pad"),
    ("torch.arange(len(ids)))[:, None]", "torch.arange(ids.shape[1]))"),
    ("MultiheadAttention(width, heads)", "MultiheadAttention(width, heads, batch_first=True)"),
    ("self.out(x[0])", "self.out(x[:, 0])"),
)


def test_a_network_as_wide_as_the_model_is_found_by_names(tmp_path: Path) -> None:
    """Attention has the other matrices of that width, by their names."""
    made = adapted(tmp_path, "TextModel", SQUARE)
    assert made.limits.inner == 1
    assert not broken(made, "encoder.formula")


@pytest.mark.proof
def test_a_mistake_next_to_a_network_as_wide_as_the_model_is_reported(tmp_path: Path) -> None:
    """A residual connection that is left out is one."""
    wrong = "self.second(x + ", "self.second("
    assert asked_or_broken(tmp_path, "TextModel", SQUARE, *wrong, "encoder.formula")


def test_the_name_that_a_caller_has_for_a_mask_says_what_it_means(tmp_path: Path) -> None:
    """A tokenizer's attention_mask is 1 for a token: a model that hides those is asked about."""
    source = edited(
        SQUARE,
        ("forward(self, ids)", "forward(self, ids, mask)"),
        ("ids == self.pad", "mask == 0"),
    )
    call = "from own import TextModel\n\nmodel = TextModel(9)\nmodel(batch['ids'], batch['{}'])\n"
    wrong = edited(source, ("mask == 0", "mask == 1"))
    caller = tmp_path / "training.py"
    caller.write_text(call.format("attention_mask"))
    adapted(tmp_path, "TextModel", source)
    with pytest.raises(Unclear, match="By its caller the mask of TextModel"):
        adapted(tmp_path, "TextModel", wrong)
    caller.write_text(call.format("hidden"))
    assert "True blocks" in " ".join(adapted(tmp_path, "TextModel", wrong).understood)


def test_rows_of_a_head_of_one_length_are_those_of_samples(tmp_path: Path) -> None:
    """Layers that attend along the first axis mix them, though the ids could be (L, B)."""
    source = edited(
        CODE,
        ("self.out = nn.Linear(width, 3)", "self.out = nn.Linear(width * max_len, 3)"),
        ("max_len", "ntoken"),
        ("hidden = (ids == self.pad).t()", "hidden = None"),
        ("self.out(x[0])", "self.out(x.flatten(1))"),
    )
    assert broken(adapted(tmp_path, "TextModel", source), "encoder.formula")


NETWORK = """
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up = nn.Linear(d_model, d_ff)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = self.up(x)
        return self.down(h * 0.5 * (1.0 + torch.erf(h / 1.41421)))
"""
TANH = ("torch.erf(h / 1.41421)", "torch.tanh(0.79788456 * h * (1 + 0.044715 * h * h))")


@pytest.mark.parametrize("edit", [(), (TANH,)])
def test_rounded_constants_of_an_activation_are_assumed(
    tmp_path: Path, edit: tuple[tuple[str, str], ...]
) -> None:
    """Numbers that agree in float32 alone are judged in that, or in coarser ones."""
    source = edited(NETWORK, *edit)
    made = adapted(tmp_path, "FeedForward", source)
    assert "float64" not in made.limits.precisions
    assert any("constants of its activation are rounded" in one for one in made.assumed)
    assert not broken(made, "feed_forward.formula", "feed_forward.activation")
    wrong = edited(source, ("h * 0.5 *", "0.5 *"))
    clauses = "feed_forward.formula", "feed_forward.activation"
    assert asked_or_broken(tmp_path, "FeedForward", wrong, "self.up(x)", "self.up(x) ", *clauses)


ATTENTION = """
import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, scale=None):
        scores = q @ k.transpose(-1, -2)
        if scale:
            scores = scores * scale
        return scores.softmax(-1) @ v
"""


def test_a_scale_that_the_caller_gives_is_asked_about(tmp_path: Path) -> None:
    """Without an argument for it, one that is left out is a mistake."""
    file = tmp_path / "scaled.py"
    file.write_text(ATTENTION)
    assert "scales no score where scale is not given" in asked(f"{file}:ScaledDotProductAttention")
    plain = edited(ATTENTION, ("scale=None", "dropout=None"), ("if scale:", "if dropout:"))
    plain = edited(plain, ("scores * scale", "scores * dropout"))
    name = "ScaledDotProductAttention"
    assert asked_or_broken(
        tmp_path, name, plain, "softmax(-1)", "softmax(-1) ", "attention.formula"
    )
