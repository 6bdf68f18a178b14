"""Whole models that no name explains, and numbers do: heads, precisions, ids, masks in between."""

import inspect
from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.arguments import read
from attentest.targets.models.building import building
from attentest.targets.models.size_names import size_by_words
from attentest.targets.resolve import module_of

ANNOTATED = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")
SOURCE = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.width = heads, d_model // heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q, k, v, mask):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, self.width)).transpose(1, 2)
            for one, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        scores = (q @ k.mT / math.sqrt(self.width)).masked_fill(~mask, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, d_model, heads, d_ff, crossing):
        super().__init__()
        self.own = Attention(d_model, heads)
        self.cross = Attention(d_model, heads) if crossing else None
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(2 + crossing)])

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.norms[0](x + self.own(x, x, x, mask))
        if self.cross is not None:
            x = self.norms[1](x + self.cross(x, memory, memory, memory_mask))
        return self.norms[-1](x + self.net(x))


class Core(nn.Module):
    def __init__(self, n_encoders, n_decoders, d_model, heads, d_ff):
        super().__init__()
        self.encoders = nn.ModuleList([Layer(d_model, heads, d_ff, 0) for _ in range(n_encoders)])
        self.decoders = nn.ModuleList([Layer(d_model, heads, d_ff, 1) for _ in range(n_decoders)])

    def forward(self, inputs, inputs_mask, targets, targets_mask):
        for layer in self.encoders:
            inputs = layer(inputs, inputs_mask)
        for layer in self.decoders:
            targets = layer(targets, targets_mask, inputs, inputs_mask)
        return targets


class Seq2Seq(nn.Module):
    def __init__(self, n_src, n_tgt, n_encoders, n_decoders, d_model, heads, d_ff, pad_idx=-1):
        super().__init__()
        self.pad = pad_idx
        self.width = d_model
        self.src, self.tgt = nn.Embedding(n_src, d_model), nn.Embedding(n_tgt, d_model)
        self.core = Core(n_encoders, n_decoders, d_model, heads, d_ff)
        self.head = nn.Linear(d_model, n_tgt)

    def placed(self, ids, table):
        steps = torch.arange(ids.shape[1], dtype=torch.float64)[:, None]
        rates = 10000 ** -(torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        both = torch.stack([(steps * rates).sin(), (steps * rates).cos()], -1).flatten(1)
        x = table(ids) * math.sqrt(self.width)
        return x + both[:, : self.width].to(x.dtype)

    def forward(self, inputs, targets):
        order = torch.ones(targets.shape[1], targets.shape[1]).tril().bool()
        seen = (targets != self.pad)[:, None, None] & order
        states = self.core(
            self.placed(inputs, self.src),
            (inputs != self.pad)[:, None, None],
            self.placed(targets, self.tgt),
            seen,
        )
        return self.head(states)
"""
FORMULA = ("model.formula", "model.pad-ids", "model.mode-comes-back")


def test_counts_of_encoders_are_numbers_of_layers() -> None:
    assert {size_by_words(one, "") for one in ("nencoders", "numdecoders")} == {"layers"}
    assert size_by_words("encoders", "") == ""


def test_an_id_of_padding_of_no_token_by_default_is_given(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(SOURCE)
    built = building(module_of(str(file)).Seq2Seq, "Seq2Seq", Reading())
    assert "pad_idx=sizes.source_pad" in built.expression


@pytest.mark.proof
def test_a_model_whose_id_of_padding_is_that_of_no_token_by_default_conforms(
    tmp_path: Path,
) -> None:
    assert broken(adapted(tmp_path, "Seq2Seq", SOURCE), *FORMULA) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[:, None, None] & order", "[:, None, None]"),
        ("(inputs != self.pad)[:, None, None]", "(inputs != 0)[:, None, None]"),
        ("scores.softmax(-1)", "scores.softmax(-2)"),
        (".tril().bool()", ".triu().bool()"),
    ],
)
def test_mistakes_in_such_a_model_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Seq2Seq", SOURCE, right, wrong, *FORMULA)


@pytest.mark.proof
def test_masks_between_the_vectors_of_stacks_are_no_target(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Core", SOURCE, component="model")
    assert broken(backend, "model.formula") == []


@pytest.mark.proof
def test_a_memory_without_its_mask_between_the_vectors_is_found(tmp_path: Path) -> None:
    right, wrong = "targets_mask, inputs, inputs_mask)", "targets_mask, inputs, inputs_mask | True)"
    mistaken = SOURCE.replace(right, wrong)
    assert mistaken != SOURCE
    backend = adapted(tmp_path, "Core", mistaken, component="model")
    assert broken(backend, "model.formula")


WITHOUT_EPSILON = SOURCE.replace(
    "class Attention(",
    """class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        return self.gain * x / x.square().mean(-1, keepdim=True).sqrt() + self.bias


class Attention(""",
    1,
)
WITHOUT_EPSILON = WITHOUT_EPSILON.replace("nn.LayerNorm", "Norm")
WITHOUT_EPSILON = WITHOUT_EPSILON.replace("pad_idx=-1)", "pad_idx=-1, dropout=0.1)")
WITHOUT_EPSILON = WITHOUT_EPSILON.replace(
    "self.width = d_model\n        self.src",
    "self.width, self.drop = d_model, nn.Dropout(dropout)\n        self.src",
)
WITHOUT_EPSILON = WITHOUT_EPSILON.replace(
    "return x + both[:, : self.width].to(x.dtype)",
    "return self.drop(x + both[:, : self.width].to(x.dtype))",
)


@pytest.mark.proof
def test_rows_that_are_dropped_as_a_whole_are_no_mistake_of_norms_without_epsilon(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "Seq2Seq", WITHOUT_EPSILON)
    assert backend.choices["norm_epsilon"] == 0
    assert backend.limits.dropout
    clauses = ("model.formula", "model.mode-comes-back", "model.random-in-train")
    assert broken(backend, *clauses) == []


BY_SIZE = ANNOTATED.replace("d_ff=2048, h=8,", "d_ff=2048, head_size=8,").replace(
    "MultiHeadedAttention(h, d_model, dropout)", "MultiHeadedAttention(head_size, d_model, dropout)"
)
OF_PARTS = ANNOTATED.replace(
    "def __init__(self, h, d_model", "def __init__(self, head_size, d_model"
)
OF_PARTS = OF_PARTS.replace(
    "self.h, self.d_k = h, d_model // h", "self.h, self.d_k = head_size, d_model // head_size"
)


@pytest.mark.proof
def test_a_model_whose_number_of_heads_is_called_their_size_is_read_by_its_numbers(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "make_model", BY_SIZE)
    assert any("head_size is the number of heads" in one for one in backend.assumed)
    assert broken(backend, "model.formula") == []


@pytest.mark.proof
def test_a_mistake_in_such_a_model_is_found(tmp_path: Path) -> None:
    right, wrong = "/ math.sqrt(self.d_k)", "* math.sqrt(self.d_k)"
    assert asked_or_broken(tmp_path, "make_model", BY_SIZE, right, wrong, "model.formula")


@pytest.mark.proof
def test_a_layer_whose_part_calls_its_number_of_heads_their_size_is_read_by_its_numbers(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "EncoderLayer", OF_PARTS)
    assert any("head_size is the number of heads" in one for one in backend.assumed)
    assert broken(backend, "encoder.layer-formula") == []


IN_SINGLE = SOURCE.replace("scores.softmax(-1)", "scores.softmax(-1, dtype=torch.float32)")


@pytest.mark.proof
def test_a_model_that_raises_in_double_precision_is_judged_in_single(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2Seq", IN_SINGLE)
    assert any("it computes in float32" in one for one in backend.assumed)
    assert backend.limits.precisions == ("float32",)
    assert broken(backend, *FORMULA) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("q @ k.mT / math.sqrt(self.width)", "q @ k.mT"),
        ("[:, None, None] & order", "[:, None, None]"),
        ("x + self.cross(x, memory", "self.cross(x, memory"),
    ],
)
def test_mistakes_in_single_precision_are_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "Seq2Seq", IN_SINGLE, right, wrong, *FORMULA)


@pytest.mark.parametrize("first", ["src_input_ids", "source_ids", "encoder_input_ids"])
@pytest.mark.parametrize("second", ["tgt_input_ids", "trg_ids", "decoder_input_ids"])
def test_tokens_of_the_target_come_before_labels(first: str, second: str) -> None:
    names = [first, f"{first}_mask", second, f"{second}_mask", "labels"]
    required = [inspect.Parameter(one, inspect.Parameter.KEYWORD_ONLY) for one in names[:4]]
    optional = inspect.Parameter("labels", inspect.Parameter.KEYWORD_ONLY, default=None)
    signature = inspect.Signature([*required, optional])
    found = read("Seq2Seq", signature, ("source", "target"), Reading())
    assert found.tokens == {"source": first, "target": second}
    assert list(found.masks) == [names[1], names[3]]


def test_a_mask_that_needs_an_entry_for_each_head_is_no_number_of_keys(tmp_path: Path) -> None:
    right = 'scores = (q @ k.mT / math.sqrt(self.width)).masked_fill(~mask, float("-inf"))'
    wrong = 'scores = q @ k.mT / math.sqrt(self.width)\n        scores[mask == 0] = float("-inf")'
    source = SOURCE.replace(right, wrong)
    assert source != SOURCE
    with pytest.raises(Unclear, match=r"may need an entry for each head") as question:
        adapted(tmp_path, "Attention", source, component="multi_head_attention")
    assert "lengths" not in str(question.value)


def test_norms_of_one_number_are_the_reason_that_is_given(tmp_path: Path) -> None:
    scalar = WITHOUT_EPSILON.replace("torch.ones(width)", "torch.ones(1)")
    scalar = scalar.replace("torch.zeros(width)", "torch.zeros(1)")
    with pytest.raises(Unclear, match=r"norms that train one number .* such as Norm,"):
        adapted(tmp_path, "Seq2Seq", scalar, strict=True)
