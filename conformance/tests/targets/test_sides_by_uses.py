"""Whole models whose arguments have no names of sides: the parts that get them say which is which.

The classes are written for these tests.
"""

import inspect

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt.components import takes_two_sides
from attentest.targets.adapt.reading import Reading
from attentest.targets.models.inputs.sides import said_by_uses

MODEL = """
import torch
from torch import nn


class Rows(nn.Module):
    def __init__(self, words, places, width):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(places, width)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        sizes = d_model, n_heads, d_ff, 0.0
        one = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        other = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        self.src_rows = Rows(src_vocab, max_len, d_model)
        self.tgt_rows = Rows(tgt_vocab, max_len, d_model)
        self.encoder = nn.TransformerEncoder(one, n_layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(other, n_layers)
        self.out = nn.Linear(d_model, tgt_vocab)

    def forward(self, context, x):
        hide = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        rows = self.src_rows(context)
        memory = self.encoder(rows, src_key_padding_mask=context == 0)
        return self.out(self.decoder(
            self.tgt_rows(x), memory, tgt_mask=hide, tgt_key_padding_mask=(x == 0),
            memory_key_padding_mask=context == 0,
        ))
"""
CODE = [
    "def forward(self, a, b):\n    return self.decode(b, self.encode(a))",
    "def forward(self, a, b):\n    h = self.embed(a)\n    h = self.encoder(h)\n"
    "    return self.decoder(self.embed(b), h)",
    "def forward(self, b, a):\n    for layer in self.encoder_layers:\n        a = layer(a)\n"
    "    for layer in self.decoder_layers:\n        b = layer(b, a)\n    return b",
    "def forward(self, b, a):\n    return self.trg_part(x=b, memory=self.src_part(a))",
]


@pytest.mark.parametrize("code", CODE)
def test_parts_say_which_argument_is_the_source(tmp_path, code):
    body = "\n".join(f"    {line}" for line in code.splitlines())
    (tmp_path / "own.py").write_text(f"class Own:\n{body}\n")
    space: dict[str, type] = {}
    exec(compile(f"class Own:\n{body}\n", str(tmp_path / "own.py"), "exec"), space)
    found = said_by_uses(space["Own"], Reading()).arguments
    assert inspect.getsource(space["Own"].forward)
    assert found == {"source": "a", "target": "b"}


@pytest.mark.parametrize("code", CODE)
def test_names_of_sides_are_not_denied_by_the_parts(tmp_path, code):
    """The code may have them the wrong way round."""
    swapped = code.replace("(a)", "(tgt)").replace("(self, a, b)", "(self, tgt, b)")
    body = "\n".join(f"    {line}" for line in swapped.splitlines())
    (tmp_path / "own.py").write_text(f"class Own:\n{body}\n")
    space: dict[str, type] = {}
    exec(compile(f"class Own:\n{body}\n", str(tmp_path / "own.py"), "exec"), space)
    if "self, tgt, b" in swapped:
        assert not said_by_uses(space["Own"], Reading()).arguments


def test_shifted_labels_are_no_target_where_one_is_named(tmp_path):
    code = (
        "def forward(self, input_ids, decoder_input_ids=None, labels=None):\n"
        "    if decoder_input_ids is None:\n        decoder_input_ids = shifted(labels)\n"
        "    return self.decoder(decoder_input_ids, self.encoder(input_ids))"
    )
    body = "\n".join(f"    {line}" for line in code.splitlines())
    (tmp_path / "own.py").write_text(f"class Own:\n{body}\n")
    space: dict[str, type] = {}
    exec(compile(f"class Own:\n{body}\n", str(tmp_path / "own.py"), "exec"), space)
    assert not said_by_uses(space["Own"], Reading()).arguments  # the names say it


@pytest.mark.proof
def test_model_with_a_context_first_is_judged(tmp_path):
    backend = adapted(tmp_path, "Translator", MODEL)
    assert "source=context, target=x" in backend.summary
    assert not broken(backend, "model.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [(".triu(1)", ".triu(2)"), ("memory_key_padding_mask=context == 0,", "")],
)
def test_mistake_in_such_a_model_is_found(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "Translator", MODEL, right, wrong, "model.formula")


DEEP = """
import torch
from torch import nn

d_model, n_heads, d_ff, max_len = 512, 8, 2048, 64
encoder_layers, decoder_layers = 6, 1
dropout = 0.1


class Rows(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d_model), nn.Embedding(max_len, d_model)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab):
        super().__init__()
        sizes = d_model, n_heads, d_ff, dropout
        one = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        other = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        self.src_rows, self.tgt_rows = Rows(src_vocab), Rows(tgt_vocab)
        self.encoder = nn.TransformerEncoder(one, encoder_layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(other, decoder_layers)
        self.out = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt):
        hide = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        memory = self.encoder(self.src_rows(src), src_key_padding_mask=src == 0)
        return self.out(self.decoder(
            self.tgt_rows(tgt), memory, tgt_mask=hide, tgt_key_padding_mask=tgt == 0,
            memory_key_padding_mask=src == 0,
        ))
"""


@pytest.mark.proof
def test_constant_of_one_layer_is_a_number_of_layers(tmp_path):
    backend = adapted(tmp_path, "Translator", DEEP)
    assert "decoder_layers=sizes.layers" in backend.written()
    assert not broken(backend, "model.formula")


@pytest.mark.proof
def test_mistake_in_a_model_of_one_layer_of_a_side_is_found(tmp_path):
    wrong = edited(DEEP, ("memory_key_padding_mask=src == 0,", ""))
    assert asked_or_broken(tmp_path, "Translator", wrong, ".triu(1)", ".triu(2)", "model.formula")


class _OfBoth:
    def forward(self, source_ids, target_ids, source_mask=None):
        """Take two texts."""


class _OfOne:
    def forward(self, source_ids, source_mask=None, target_mask=None):
        """Take one text."""


def test_names_of_both_sides_are_no_encoder_of_one_text():
    assert takes_two_sides(_OfBoth)
    assert not takes_two_sides(_OfOne)
    assert not takes_two_sides(len)
