"""Whole models whose parts are read by names of several levels, and made by functions."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

PARTS = '''
import math

import torch
from torch import nn


class Rows(nn.Module):
    def __init__(self, width, out_width, heads, held):
        super().__init__()
        self.heads, self.held = heads, len(held)
        self.qkv_linear = nn.Linear(width, out_width * self.held)

    def forward(self, x):
        return [
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv_linear(x).chunk(self.held, dim=-1)
        ]


class Attention(nn.Module):
    def __init__(self, width, heads, crossing=False):
        super().__init__()
        self.crossing = crossing
        if crossing:
            self.q_layer = Rows(width, width, heads, "q")
            self.kv_layer = Rows(width, width, heads, "kv")
        else:
            self.qkv_layer = Rows(width, width, heads, "qkv")
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, memory, mask):
        if self.crossing:
            (q,), (k, v) = self.q_layer(x), self.kv_layer(memory)
        else:
            q, k, v = self.qkv_layer(x)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -torch.inf)
        return self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Network(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.down(self.up(x).relu())


class EncoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn, self.feed = Attention(width, heads), Network(width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, mask):
        x = self.norm1(x + self.attn(x, x, mask))
        return self.norm2(x + self.feed(x))


class DecoderBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn, self.feed = Attention(width, heads), Network(width)
        self.cross = Attention(width, heads, crossing=True)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, x, memory, mask, memory_mask):
        x = self.norm1(x + self.attn(x, x, mask))
        x = self.norm2(x + self.cross(x, memory, memory_mask))
        return self.norm3(x + self.feed(x))


class Table(nn.Module):
    def __init__(self, rows, width, places):
        super().__init__()
        self.table, self.width = nn.Embedding(rows, width), width
        at = torch.arange(places)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("sines", torch.stack([at.sin(), at.cos()], -1).flatten(1))

    def forward(self, ids):
        return self.table(ids) * math.sqrt(self.width) + self.sines[: ids.shape[1]]


class Encoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, mask):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, memory, mask, memory_mask):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return x


class TranslationModel(nn.Module):
    def __init__(self, source_table, target_table, encoder, decoder, head):
        super().__init__()
        self.source_table, self.target_table = source_table, target_table
        self.encoder, self.decoder, self.head = encoder, decoder, head

    def forward(self, src, tgt):
        seen = (src != 0)[:, None, None]
        before = torch.ones(tgt.shape[1], tgt.shape[1]).tril().bool() & (tgt != 0)[:, None, None]
        memory = self.encoder(self.source_table(src), seen)
        return self.head(self.decoder(self.target_table(tgt), memory, before, seen))


class Settings:
    def __init__(self):
        self.src_vocab_size, self.tgt_vocab_size, self.d_model = 9000, 9000, 512
        self.num_heads, self.num_layers, self.max_seq_len, self.learning_rate = 8, 6, 512, 0.1


def build_transformer(config):
    """Return a model with the sizes of a configuration."""
    width, heads, places = config.d_model, config.num_heads, config.max_seq_len
    encoder = [EncoderBlock(width, heads) for _ in range(config.num_layers)]
    decoder = [DecoderBlock(width, heads) for _ in range(config.num_layers)]
    return TranslationModel(
        Table(config.src_vocab_size, width, places),
        Table(config.tgt_vocab_size, width, places),
        Encoder(nn.ModuleList(encoder)),
        Decoder(nn.ModuleList(decoder)),
        nn.Linear(width, config.tgt_vocab_size),
    )
'''
FORMULA = "model.formula"


@pytest.mark.proof
def test_model_made_of_the_fields_that_its_function_reads_is_judged(tmp_path):
    """The class of settings takes no size: an object with the fields is made in its place.

    Its queries, keys and values lie in attributes of one name, under names that say which.
    """
    assert not broken(
        adapted(tmp_path, "build_transformer", PARTS), FORMULA, "model.padding-in-a-batch"
    )


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(q,), (k, v) =", "(q,), (v, k) ="),
        ("/ math.sqrt(q.shape[-1])", ""),
        ("self.kv_layer(memory)", "self.kv_layer(x)"),
    ],
)
def test_mistake_in_a_model_made_of_fields_is_found(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "build_transformer", PARTS, right, wrong, FORMULA)


@pytest.mark.proof
def test_model_that_is_called_with_equal_lengths_alone_is_asked_about_as_that(tmp_path):
    wrong = PARTS.replace("memory, before, seen", "memory, before, before")
    assert wrong != PARTS
    with pytest.raises(Unclear, match="where source and target have the same length, and not"):
        adapted(tmp_path, "build_transformer", wrong)


@pytest.mark.proof
def test_classes_in_what_a_function_makes_are_its_parts(tmp_path):
    (tmp_path / "own.py").write_text(PARTS)
    found = {one.name: (one.component, one.inside) for one in members(str(tmp_path / "own.py"))}
    assert found["build_transformer"] == ("model", "")
    assert found["TranslationModel"] == ("", "build_transformer")
    assert found["Decoder"][1] == found["Encoder"][1] == "build_transformer"


SETTINGS = """
from dataclasses import dataclass
from enum import Enum


class Words(Enum):
    JOINED = "joined"
    SPLIT = "split"


@dataclass
class ModelSettings:
    src_vocab_size: int
    tgt_vocab_size: int
    d_model: int
    num_heads: int
    num_layers: int
    max_seq_len: int


@dataclass
class DataSettings:
    folder: str
    words: Words
    held_out: float


class Transformer(TranslationModel):
    def __init__(self, model_config: ModelSettings, data_config: DataSettings, activation: str):
        if activation not in ("relu", "gelu"):
            raise ValueError(activation)
        width, heads = model_config.d_model, model_config.num_heads
        places = model_config.max_seq_len
        joined = data_config.words == Words.JOINED
        source = Table(model_config.src_vocab_size, width, places)
        target = source if joined else Table(model_config.tgt_vocab_size, width, places)
        number = range(model_config.num_layers)
        encoder = Encoder(nn.ModuleList([EncoderBlock(width, heads) for _ in number]))
        decoder = Decoder(nn.ModuleList([DecoderBlock(width, heads) for _ in number]))
        head = nn.Linear(width, model_config.tgt_vocab_size)
        super().__init__(source, target, encoder, decoder, head)
"""


@pytest.mark.proof
def test_fields_of_settings_that_are_no_sizes_get_plain_values(tmp_path):
    """Texts and numbers that the code does not read are some; members and words are assumptions."""
    source = PARTS.partition("class Settings")[0] + SETTINGS
    backend = adapted(tmp_path, "Transformer", source)
    assert not broken(backend, FORMULA)
    said = " ".join(backend.assumed)
    assert "assumed words=Words.SPLIT" in said
    assert "assumed activation='relu'" in said
    wrong = "(q @ k.mT / math.sqrt(q.shape[-1]))", "(q @ k.mT)"
    assert asked_or_broken(tmp_path, "Transformer", source, *wrong, FORMULA)


METHODS = """
class Transformer(nn.Module):
    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_layers, max_len):
        super().__init__()
        self.source_table = Table(src_vocab_size, d_model, max_len)
        self.target_table = Table(tgt_vocab_size, d_model, max_len)
        self.encoder = Encoder(
            nn.ModuleList([EncoderBlock(d_model, num_heads) for _ in range(num_layers)])
        )
        self.decoder = Decoder(
            nn.ModuleList([DecoderBlock(d_model, num_heads) for _ in range(num_layers)])
        )
        self.head = nn.Linear(d_model, tgt_vocab_size)

    def encode(self, src):
        return self.encoder(self.source_table(src), (src != 0)[:, None, None])

    def decode(self, src, memory, tgt):
        seen = (src != 0)[:, None, None]
        before = torch.ones(tgt.shape[1], tgt.shape[1]).tril().bool() & (tgt != 0)[:, None, None]
        return self.head(self.decoder(self.target_table(tgt), memory, before, seen))
"""


@pytest.mark.proof
def test_model_without_a_call_hides_the_padding_of_the_source_in_its_decoding(tmp_path):
    source = PARTS.partition("class TranslationModel")[0] + METHODS
    backend = adapted(tmp_path, "Transformer", source)
    assert not broken(backend, FORMULA, "model.padding-in-a-batch")
    wrong = "memory, before, seen", "memory, before, seen | True"
    assert asked_or_broken(
        tmp_path, "Transformer", source, *wrong, FORMULA, "model.padding-in-a-batch"
    )
