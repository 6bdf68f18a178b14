"""Masks that are called after their side, beside a decoder layer that is causal by itself."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt.objects.mask_arguments import says_mask

CODE = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, stream, ordered=False, padding_mask=None, others=None):
        others = stream if others is None else others
        q, k, v = self.split(self.q(stream)), self.split(self.k(others)), self.split(self.v(others))
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if ordered:
            hidden = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(hidden, -1e9)
        if padding_mask is not None:
            scores = scores.masked_fill(padding_mask, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.own, self.cross = Attention(heads, width), Attention(heads, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(width) for _ in range(3))

    def forward(self, embeddings, encoder_outputs, padding_mask_enc, padding_mask_dec=None):
        x = embeddings
        x = self.norm_1(x + self.own(x, True, padding_mask_dec))
        x = self.norm_2(x + self.cross(x, False, padding_mask_enc, encoder_outputs))
        return self.norm_3(x + self.down(torch.relu(self.up(x))))


class SelfAttention(Attention):
    def forward(self, residual_stream):
        return super().forward(residual_stream)
"""


def test_causal_decoder_layer_with_a_mask_for_each_side_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderLayer", CODE)
    assert broken(backend, "decoder.layer-formula", "decoder.causality") == []
    assert "source_mask=padding_mask_enc" in backend.summary
    assert [one for one in backend.assumed if "assumed padding_mask_dec=None" in one]


@share(4, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (", False, padding_mask_enc,", ", False, None,"),
        (" / math.sqrt(q.shape[-1])", ""),
        ("triu(1)", "triu(2)"),
        (", False, padding_mask_enc,", ", False, padding_mask_dec,"),
    ],
)
def test_mistakes_in_such_a_layer_do_not_pass(tmp_path: Path, right: str, wrong: str) -> None:
    clause = "decoder.layer-formula"
    assert asked_or_broken(tmp_path, "DecoderLayer", CODE, right, wrong, clause)


def test_the_one_input_of_self_attention_may_have_any_name(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", CODE)
    assert broken(backend, "multi_head_attention.formula") == []


NAMED = """
class TransformerDecoderLayer(DecoderLayer):
    def forward(self, enc_rep_orig, dec_rep_orig, enc_mask):
        return super().forward(dec_rep_orig, enc_rep_orig, enc_mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.inner = Attention(heads, width)

    def forward(self, v_vec, k_vec, q_vec):
        inner = self.inner
        q, k = inner.split(inner.q(q_vec)), inner.split(inner.k(k_vec))
        v = inner.split(inner.v(v_vec))
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1)
        return inner.o((weights @ v).transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("TransformerDecoderLayer", "decoder.layer-formula"),
        ("MultiHeadAttention", "multi_head_attention.formula"),
    ],
)
def test_inputs_are_known_by_a_word_of_their_names(tmp_path: Path, name: str, clause: str) -> None:
    backend = adapted(tmp_path, name, CODE + NAMED)
    assert broken(backend, clause) == []
    assert not [one for one in backend.assumed if "which nothing says" in one]


def test_a_mask_of_a_side_that_is_not_called_one_is_given_and_a_forgotten_one_is_found(
    tmp_path: Path,
) -> None:
    code = CODE.replace("padding_mask_enc", "memory_blocked")
    backend = adapted(tmp_path, "DecoderLayer", code)
    assert "source_mask=memory_blocked" in backend.summary
    assert broken(backend, "decoder.layer-formula") == []
    used = (", False, memory_blocked,", ", False, None,")
    assert asked_or_broken(tmp_path, "DecoderLayer", code, *used, "decoder.layer-formula")


@pytest.mark.parametrize("name", ["keep_prob", "encoder_hidden_states", "enc_valid_lens", "self"])
def test_other_names_are_those_of_no_mask(name: str) -> None:
    assert not says_mask(name)
