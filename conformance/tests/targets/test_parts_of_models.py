"""Blocks of decoder-only models, models of states, and decoders that need no argument."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

BLOCK = """
import torch
from torch import nn


def turned(x, cos, sin):
    one, other = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-other, one], dim=-1) * sin


class ParallelBlock(nn.Module):
    def __init__(self, dim, heads, hidden_dim):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, hidden_dim), nn.Linear(hidden_dim, dim)

    def mixed(self, y, cos, sin, attention_mask):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in self.qkv(y).chunk(3, dim=-1)
        )
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def forward(self, x, position_embeddings, attention_mask=None):
        y = self.norm(x)
        mixed = self.mixed(y, *position_embeddings, attention_mask)
        return x + mixed + self.down(nn.functional.gelu(self.up(y)))
"""
SEQUENTIAL = BLOCK.replace(
    "return x + mixed + self.down(nn.functional.gelu(self.up(y)))",
    "x = x + mixed\n        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))",
).replace("self.norm = nn", "self.norm2 = nn.LayerNorm(dim)\n        self.norm = nn")
FORMULA = "language_model.formula"

STATES = (
    BLOCK.replace(
        "x, position_embeddings, attention_mask=None",
        "x, cos, sin, attention_mask",
    ).replace("*position_embeddings", "cos, sin")
    + """

class TextModel(nn.Module):
    def __init__(self, vocab_size, dim, heads, hidden_dim, n_layers):
        super().__init__()
        self.width = dim // heads
        self.words = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(ParallelBlock(dim, heads, hidden_dim) for _ in range(n_layers))
        self.last = nn.LayerNorm(dim)

    def forward(self, input_ids):
        x, size = self.words(input_ids), input_ids.shape[1]
        columns = torch.arange(0, self.width, 2, dtype=x.dtype) / self.width
        angles = torch.arange(size, dtype=x.dtype)[:, None] * 10000.0**-columns
        angles = torch.cat([angles, angles], dim=-1)
        later = torch.full((size, size), -torch.inf, dtype=x.dtype).triu(1)
        for layer in self.layers:
            x = layer(x, angles.cos(), angles.sin(), later)
        return (self.last(x),)
"""
)


@pytest.mark.proof
def test_parallel_block_with_given_positions_is_judged_in_a_model(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "ParallelBlock", BLOCK)
    assert backend.choices["block_layout"] == "parallel-one-norm"
    assert backend.choices["attention_rotary"] == "query-and-key"
    assert any("ParallelBlock is a block" in one for one in backend.assumed)
    assert not broken(backend, FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("turned(k, cos, sin)", "k"),
        ("q.shape[-1] ** 0.5", "self.out.in_features ** 0.5"),
        ("return x + self.down", "return self.down"),
        ("x = x + mixed", "x = mixed"),
    ],
)
def test_mistake_in_a_block_with_given_positions_is_a_violation(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in SEQUENTIAL
    code = SEQUENTIAL.replace("ParallelBlock", "DecoderLayer")
    assert not broken(adapted(tmp_path, "DecoderLayer", code), "encoder.layer-formula")
    wrong = adapted(tmp_path, "DecoderLayer", code.replace(old, new))
    (component,) = wrong.recipes
    clause = "encoder.layer-formula" if component == "encoder_layer" else FORMULA
    assert broken(wrong, clause)


@pytest.mark.proof
def test_block_that_must_be_given_a_mask_gets_one_of_later_tokens(tmp_path: Path) -> None:
    given = BLOCK.replace("attention_mask=None):", "attention_mask):").replace(
        "        if attention_mask is not None:\n            scores", "        scores"
    )
    backend = adapted(tmp_path, "ParallelBlock", given)
    assert any("mask of later tokens as attention_mask" in one for one in backend.assumed)


@pytest.mark.proof
def test_block_that_leaves_its_sum_to_the_caller_is_a_question(tmp_path: Path) -> None:
    pair = BLOCK.replace("return x + mixed + ", "return x + mixed, ")
    with pytest.raises(Unclear):
        adapted(tmp_path, "ParallelBlock", pair)


def test_block_that_hides_nothing_is_no_block_of_a_model(tmp_path: Path) -> None:
    code = BLOCK.replace("turned(q, cos, sin), turned(k, cos, sin)", "q, k")
    code = code.replace("x, position_embeddings, attention_mask=None", "x").replace(
        "*position_embeddings, attention_mask", "0, 0, None"
    )
    with pytest.raises(Unclear, match="it is a parallel block"):
        adapted(tmp_path, "ParallelBlock", code)


@pytest.mark.proof
def test_model_of_states_is_judged_with_its_table(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TextModel", STATES)
    assert backend.choices["tying"] == "all-three"
    assert any("words.weight, as the generator" in one for one in backend.assumed)
    assert not broken(backend, FORMULA)


@pytest.mark.proof
def test_model_of_states_that_sees_the_next_token_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "TextModel", STATES.replace(".triu(1)", ".triu(2)"))


@pytest.mark.proof
def test_model_of_states_with_a_mistake_is_a_violation(tmp_path: Path) -> None:
    wrong = STATES.replace("turned(k, cos, sin)", "k")
    assert broken(adapted(tmp_path, "TextModel", wrong), FORMULA)


DECODER = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.own = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.cross = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, memory, pads, memory_pads):
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        x = self.norm1(x + self.own(x, x, x, attn_mask=later, key_padding_mask=pads)[0])
        x = self.norm2(x + self.cross(x, memory, memory, key_padding_mask=memory_pads)[0])
        return self.norm3(x + self.down(torch.relu(self.up(x))))


class TextDecoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, decoder_layers, max_length):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_length, d_model)
        self.layers = nn.ModuleList(Layer(d_model, heads, d_ff) for _ in range(decoder_layers))

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
    ):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        pads = None if attention_mask is None else attention_mask == 0
        others = None if encoder_attention_mask is None else encoder_attention_mask == 0
        for layer in self.layers:
            x = layer(x, encoder_hidden_states, pads, others)
        return x
"""


def test_decoder_that_hides_later_positions_needs_no_argument(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TextDecoder", DECODER)
    assert any("judged as causal, without attention_mask" in one for one in backend.assumed)
    assert not broken(backend, "decoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.cross(x, memory, memory, ", "self.cross(x, memory, memory * 0.5, "),
        ("self.norm2(x + self.cross", "self.norm2(self.cross"),
    ],
)
def test_mistake_in_a_decoder_that_hides_later_positions_is_detected(
    tmp_path: Path, old: str, new: str
) -> None:
    assert old in DECODER
    wrong = DECODER.replace(old, new).replace("TextDecoder", "Decoder")
    try:
        assert broken(adapted(tmp_path, "Decoder", wrong), "decoder.formula")
    except Unclear as question:
        assert "Decoder" in str(question)  # noqa: PT017  # asked about, and not judged as sound


FIRST = """
import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, layer_idx=None):
        super().__init__()
        self.norm1 = nn.Identity() if layer_idx == 0 else nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.own = nn.MultiheadAttention(d_model, heads, batch_first=True)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, attn_mask=None):
        y = self.norm1(x)
        x = x + self.own(y, y, y, attn_mask=attn_mask)[0]
        return x + self.down(torch.relu(self.up(self.norm2(x))))
"""


def test_layer_whose_first_one_has_no_norm_is_judged_as_a_later_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "EncoderLayer", FIRST)
    assert any("judged as the second one, with layer_idx=1" in one for one in backend.assumed)
    assert not any("is held and not called" in one for one in backend.assumed)
    assert not broken(backend, "encoder.layer-formula")


@pytest.mark.proof
def test_norm_that_is_called_is_not_reported_as_held_alone(tmp_path: Path) -> None:
    code = FIRST.replace(
        "nn.Identity() if layer_idx == 0 else nn.LayerNorm(d_model)", "nn.Identity()"
    )
    try:
        backend = adapted(tmp_path, "EncoderLayer", code)
    except Unclear:
        return
    assert not any("is held and not called" in one for one in backend.assumed)
