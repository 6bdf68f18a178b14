"""Names of sizes and masks that published code has, and mistakes in code with these names."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

LAYER = (
    (SUPPORT / "wild" / "own_memory_mask.py")
    .read_text()
    .replace("d_ff", "filter_size")
    .replace("tgt_mask", "masked_self_attn_mask")
)
FORMULA = "decoder.layer-formula"
CAUSAL = """
import torch
from torch import nn


class MaskedCausalAttention(nn.Module):
    def __init__(self, h_dim, max_T, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.q_net, self.k_net, self.v_net, self.proj = (nn.Linear(h_dim, h_dim) for _ in range(4))
        self.register_buffer("mask", torch.ones(max_T, max_T).tril())

    def forward(self, x):
        t = x.shape[1]
        q, k, v = (
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.q_net, self.k_net, self.v_net)
        )
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        return self.proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
ATTENTION = "multi_head_attention.formula"


@pytest.mark.proof
def test_an_inner_width_and_a_mask_of_the_target_are_read_by_their_names(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "DecoderLayer", LAYER)
    roles = backend.recipes["decoder_layer"].call.arguments.roles
    assert roles["target_mask"] == "masked_self_attn_mask"
    assert broken(backend, FORMULA) == []
    mistaken = LAYER.replace("self.norm3(x + ", "self.norm3(")
    assert broken(adapted(tmp_path, "DecoderLayer", mistaken), FORMULA)


def test_a_greatest_length_is_read_by_its_name(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "MaskedCausalAttention", CAUSAL), ATTENTION) == []
    mistaken = CAUSAL.replace("q.shape[-1] **", "x.shape[-1] **")
    assert broken(adapted(tmp_path, "MaskedCausalAttention", mistaken), ATTENTION)


def test_attention_called_mhsa_is_judged(tmp_path: Path) -> None:
    code = CAUSAL.replace("MaskedCausalAttention", "MHSA")
    assert broken(adapted(tmp_path, "MHSA", code), ATTENTION) == []
    mistaken = code.replace("q.shape[-1] **", "x.shape[-1] **")
    assert broken(adapted(tmp_path, "MHSA", mistaken), ATTENTION)
