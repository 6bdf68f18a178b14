"""Whole models that are built with vocabularies or tokenizers: what these are asked for."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt.reading import Reading
from attentest.targets.file_modules import load
from attentest.targets.language_models.recognition import takes_tokens_alone
from attentest.targets.models.building import building

MODEL = """
import math

import torch
from torch import nn


class Sines(nn.Module):
    def __init__(self, width, places):
        super().__init__()
        angles = torch.arange(places)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        table = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


class Translator(nn.Module):
    def __init__(self, source, target, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        sizes = d_model, n_heads, d_ff, 0.0
        one = nn.TransformerEncoderLayer(*sizes, batch_first=True)
        other = nn.TransformerDecoderLayer(*sizes, batch_first=True)
        self.source_words = nn.Embedding(SIZE(source), d_model)
        self.target_words = nn.Embedding(SIZE(target), d_model)
        self.sines = Sines(d_model, max_len)
        self.encoder = nn.TransformerEncoder(one, n_layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(other, n_layers)
        self.out = nn.Linear(d_model, SIZE(target))
        self.pads = PAD(source), PAD(target)

    def forward(self, src, tgt=None):
        if tgt is None:
            return self.translate(src)
        hide = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        padding = src == self.pads[0]
        memory = self.encoder(self.sines(self.source_words(src)), src_key_padding_mask=padding)
        return self.out(self.decoder(
            self.sines(self.target_words(tgt)), memory, tgt_mask=hide,
            tgt_key_padding_mask=tgt == self.pads[1], memory_key_padding_mask=padding,
        ))

    def translate(self, src):
        tokens = src[:, :1]
        for _ in range(src.shape[1]):
            tokens = torch.cat([tokens, self(src, tokens)[:, -1:].argmax(-1)], 1)
        return tokens
"""
ASKED = [
    ("len(source.itos)", "source.stoi['<pad>']"),
    ("len(source.vocab)", "source.vocab.stoi[source.pad_token]"),
    ("source.get_vocab_size()", "source.token_to_id('[PAD]')"),
    ("source.get_piece_size()", "source.pad_id()"),
    ("source.vocab_size", "source.pad_token_id"),
    ("len(source.get_vocab())", "source.get_stoi()['<pad>']"),
    ("source.n_words", "source.word2idx['<pad>'] if '<pad>' in source.word2idx else 0"),
]


def made(size: str, pad: str) -> str:
    """Return the model that asks its vocabularies for `size` and for `pad`."""
    text = MODEL
    for side in ("source", "target"):
        text = text.replace(f"SIZE({side})", size.replace("source", side))
        text = text.replace(f"PAD({side})", pad.replace("source", side))
    return text


@pytest.mark.parametrize(("size", "pad"), ASKED)
def test_vocabulary_answers_by_its_usual_names(tmp_path, size, pad):
    (tmp_path / "own.py").write_text(made(size, pad))
    model = load(tmp_path / "own.py").Translator
    built = building(model, "Translator", Reading())
    assert {"source_vocabulary", "target_vocabulary", "source_pad", "target_pad"} <= built.known


@pytest.mark.proof
def test_model_that_translates_where_it_gets_no_target_is_judged_as_one_of_two_sides(tmp_path):
    source = made(*ASKED[2])
    (tmp_path / "own.py").write_text(source)
    assert not takes_tokens_alone(load(tmp_path / "own.py").Translator)
    backend = adapted(tmp_path, "Translator", source)
    assert not broken(backend, "model.formula", "model.pad-ids")


LABELLED = """
from torch import nn


class Writer(nn.Module):
    def forward(self, src, target=None):
        logits = self.out(self.words(src))
        loss = None
        if target is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
        return logits, loss
"""


def test_labels_that_may_be_left_out_are_no_side(tmp_path):
    (tmp_path / "own.py").write_text(LABELLED)
    assert takes_tokens_alone(load(tmp_path / "own.py").Writer)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("memory_key_padding_mask=padding,", ""), (".triu(1)", ".triu(2)"), ("pads[1]", "pads[0]")],
)
def test_mistake_in_a_model_with_vocabularies_is_found(tmp_path, right, wrong):
    assert asked_or_broken(
        tmp_path, "Translator", made(*ASKED[2]), right, wrong, "model.formula", "model.pad-ids"
    )
