"""Encoders whose call takes a dictionary, a tuple or an object, which holds the ids."""

import copy

import pytest
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear
from attentest_spec import Sizes

CODE = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.wide, self.narrow = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, hidden):
        x = self.first(x + self.attention(x, x, x, key_padding_mask=hidden)[0])
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class Reviews(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        self.rows, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(Layer(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.head = nn.Linear(d_model, 2)

    def forward(self, batch):
        ids, mask = batch["input_ids"], batch["attention_mask"]
        x = self.rows(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x, mask == 0)
        logits = self.head(x.mean(1))
        if "labels" in batch:
            return logits, nn.functional.cross_entropy(logits, batch["labels"])
        return logits
"""
READ = 'ids, mask = batch["input_ids"], batch["attention_mask"]'
LABELS = 'batch["labels"]', "batch"
CLAUSES = "encoder.formula", "encoder.padding-invariance", "encoder.batch-independence"
STYLES = {
    "dictionary": ((READ, READ),),
    "get": (
        ('batch["attention_mask"]', 'batch.get("attention_mask")'),
        (
            "        x = self.rows",
            "        mask = ids.bool() if mask is None else mask\n        x = self.rows",
        ),
    ),
    "tuple": ((READ, "ids, mask = batch"),),
    "numbers": ((READ, "ids = batch[0]\n        mask = batch[1]"),),
    "object": ((READ, "ids, mask = batch.input_ids, batch.attention_mask"),),
}
WITHOUT = edited(CODE[: CODE.index('        if "labels"')], ("logits = ", "return "))


@share(2, rest=1)
@pytest.mark.parametrize("style", STYLES)
def test_encoder_of_a_batch_is_called_with_its_items(tmp_path, style):
    source = CODE if style in ("dictionary", "get") else WITHOUT
    source = edited(source, *STYLES[style])
    backend = adapted(tmp_path, "Reviews", source)
    assert any("assumed that batch is a" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []
    assert "of_items(" in backend.written()
    wrong = edited(source, ("self.first(x + ", "self.first("))
    backend = adapted(tmp_path, "Reviews", wrong)
    assert broken(backend, *CLAUSES)


def test_copies_of_a_model_of_items_have_parameters_of_their_own(tmp_path):
    backend = adapted(tmp_path, "Reviews", CODE)
    stack = backend.recipes["encoder"].build(Sizes())
    other = copy.deepcopy(stack)
    assert next(other.parameters()) is not next(stack.parameters())


@pytest.mark.parametrize(
    "body",
    ["ids = batch", "ids, mask = batch['input_ids'], len(batch)", "ids = batch[0][None]"],
)
def test_argument_that_is_used_otherwise_is_no_batch(tmp_path, body):
    source = edited(WITHOUT, (READ, body), ("layer(x, mask == 0)", "layer(x, None)"))
    try:
        backend = adapted(tmp_path, "Reviews", source)
    except Unclear:
        return
    assert not any("a dictionary" in one for one in backend.assumed)


HANDED = (
    WITHOUT
    + """

class Pairs(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        self.reviews = Reviews(vocab_size, d_model, n_heads, n_layers, d_ff, max_len)
        self.last = nn.Linear(2, 2)

    def forward(self, batch):
        return self.last(self.reviews(batch))
"""
)
NAMED = edited(WITHOUT, (READ, f"held = batch\n        {READ.replace('batch', 'held')}"))


@share(2, rest=1)
@pytest.mark.parametrize(("name", "source"), [("Pairs", HANDED), ("Reviews", NAMED)])
def test_batch_that_is_handed_on_or_renamed_is_read_by_its_items(tmp_path, name, source):
    backend = adapted(tmp_path, name, source)
    assert any("assumed that batch is a" in one for one in backend.assumed)
    assert broken(backend, *CLAUSES) == []
    wrong = edited(source, ("self.first(x + ", "self.first("))
    assert broken(adapted(tmp_path, name, wrong), *CLAUSES)
