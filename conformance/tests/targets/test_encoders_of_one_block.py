"""Classes that embed tokens and call one layer, which is in no list; and layers with wide heads."""

import pytest
import torch
from mistaken_code import adapted, broken, edited
from proof import share

import attentest
from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

CLASSIFIER = """
import torch
from torch import nn


class Places(nn.Module):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.rows = nn.Embedding(vocab_size, embed_dim)
        self.places = nn.Embedding(maxlen, embed_dim)

    def forward(self, ids):
        return self.rows(ids) + self.places(torch.arange(ids.shape[1]))


class Block(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.att = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
        self.wide, self.narrow = nn.Linear(embed_dim, ff_dim), nn.Linear(ff_dim, embed_dim)
        self.first, self.second = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)

    def forward(self, x):
        x = self.first(x + self.att(x, x, x, need_weights=False)[0])
        return self.second(x + self.narrow(torch.relu(self.wide(x))))


class Reviews(nn.Module):
    def __init__(self, maxlen, vocab_size, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.embedding = Places(maxlen, vocab_size, embed_dim)
        self.block = Block(embed_dim, num_heads, ff_dim)
        self.head = nn.Linear(embed_dim, 2)

    def forward(self, x):
        return self.head(self.block(self.embedding(x)).mean(1))
"""
CLAUSES = "encoder.formula", "encoder.batch-independence"


def test_one_block_behind_an_embedding_is_an_encoder_of_one_layer(tmp_path):
    backend = adapted(tmp_path, "Reviews", CLASSIFIER)
    assert backend.limits.layers == 1
    assert not any("all depths" in one for one in backend.understood)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("self.first(x + self.att(x, x, x, need_weights=False)[0])", "self.first(x)"),
        ("torch.relu(self.wide(x))", "self.wide(x)"),
        ("self.second(x + ", "self.second("),
        ("batch_first=True", "batch_first=False"),
        ("self.places(torch.arange(ids.shape[1]))", "self.places(ids % 2)"),
        (
            "self.head(self.block(self.embedding(x)).mean(1))",
            "self.head(self.embedding(x).mean(1))",
        ),
    ],
)
def test_mistake_in_the_only_block_is_no_design(tmp_path, right, wrong):
    try:
        backend = adapted(tmp_path, "Reviews", edited(CLASSIFIER, (right, wrong)))
    except Unclear:
        return
    unread = [one for one in backend.assumed if "cannot be read" in one]
    assert unread or broken(backend, *CLAUSES)


def test_block_that_is_called_more_than_once_is_asked_about(tmp_path):
    twice = ("self.block(self.embedding(x))", "self.block(self.block(self.embedding(x)))")
    with pytest.raises(Unclear):
        adapted(tmp_path, "Reviews", edited(CLASSIFIER, twice))


WIDE = """
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(dim, dim * heads, bias=False) for _ in range(3))
        self.o = nn.Linear(dim * heads, dim)

    def forward(self, x):
        b, t, d = x.shape
        maps = (one(x).view(b, t, self.heads, d) for one in (self.q, self.k, self.v))
        q, k, v = (one.transpose(1, 2) for one in maps)
        weights = (q @ k.transpose(2, 3) / d**0.5).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = Heads(dim, heads)
        self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.net = nn.Sequential(nn.Linear(dim, 4 * dim), nn.ReLU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = self.first(self.attention(x) + x)
        return self.second(self.net(x) + x)


class Transformer(nn.Module):
    def __init__(self, dim, heads, depth, seq_length, num_tokens, num_classes):
        super().__init__()
        self.rows, self.places = nn.Embedding(num_tokens, dim), nn.Embedding(seq_length, dim)
        self.blocks = nn.Sequential(*(Block(dim, heads) for _ in range(depth)))
        self.head = nn.Linear(dim, num_classes)

    def forward(self, x):
        x = self.rows(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.blocks(x).mean(1)).log_softmax(-1)
"""


def test_layers_with_heads_as_wide_as_the_model_have_one_attention(tmp_path):
    backend = adapted(tmp_path, "Transformer", WIDE)
    assert backend.choices["head_width"] == "d"
    assert broken(backend, "encoder.formula") == []
    wrong = adapted(tmp_path, "Transformer", edited(WIDE, ("/ d**0.5", "")))
    assert broken(wrong, "encoder.formula")


PADDED = """
import torch
from torch import nn


class Texts(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len, pad_idx=0):
        super().__init__()
        self.pad_idx = pad_idx
        self.rows, self.places = nn.Embedding(vocab_size, d_model), nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers)
        self.head = nn.Linear(d_model, 2)

    def forward(self, ids):
        hidden = ids == self.pad_idx
        x = self.rows(ids) + self.places(torch.arange(ids.shape[1]))
        x = self.layers(x, src_key_padding_mask=hidden)
        return self.head(x[:, 0])
"""


@pytest.mark.proof
def test_layers_of_torch_are_judged_with_the_padding_that_their_fast_path_cuts_off(tmp_path):
    backend = adapted(tmp_path, "Texts", PADDED)
    clauses = (*CLAUSES, "encoder.padding-invariance")
    assert broken(backend, *clauses) == []
    assert torch.backends.mha.get_fastpath_enabled()
    wrong = edited(PADDED, ("ids == self.pad_idx", "ids != self.pad_idx"))
    try:
        backend = adapted(tmp_path, "Texts", wrong)
    except Unclear:
        return
    assert broken(backend, *clauses)


LAST = ("x = self.layers(x, src_key_padding_mask=hidden)", "x = self.layers(x)")


@share(2, rest=1)
@pytest.mark.parametrize("pooled", ["x[:, -1]", "x[:, 0]", "x.mean(1)", "x.max(1).values"])
def test_layers_that_attend_over_the_batch_are_a_violation_whatever_is_pooled(tmp_path, pooled):
    source = edited(PADDED, LAST, (", batch_first=True", ""), ("x[:, 0]", pooled))
    named = ("return self.head(" + pooled + ")", "return {'logits': self.head(" + pooled + ")}")
    for one in (source, edited(source, named)):
        backend = attentest.adapted(str(_written(tmp_path, one)))
        assert "they attend over the batch" in backend.assumed[0]
        assert broken(backend, "encoder.formula")
    plain = adapted(
        tmp_path, "Texts", edited(source, ("num_heads, d_ff", "num_heads, d_ff, batch_first=True"))
    )
    assert broken(plain, "encoder.formula") == []


def _written(folder, source):
    file = folder / "own.py"
    file.write_text(source)
    return f"{file}:Texts"
