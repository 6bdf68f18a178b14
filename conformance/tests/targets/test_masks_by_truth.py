"""Masks that are tested for truth, and masks that are added to the scores."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt.reading import Unclear

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, attention_mask=None):
        query, key, value = (
            part(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
        if attention_mask is not None:
            scores = HIDDEN
        mixed = scores.softmax(-1) @ value
        return self.out_proj(mixed.transpose(1, 2).flatten(2))
"""
ROW = "attention_mask[:, None, None, :]"
BY_TRUTH = f"scores.masked_fill({ROW}.bool(), -1e9)"


@share(4, rest=1)
@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        (f"scores + {ROW}", "added to the scores"),
        (f"scores + {ROW}.clamp(min=-1e9)", "added to the scores"),
        (f"scores + (1.0 - {ROW}) * -1e9", "may be attended"),
        (f"scores.masked_fill({ROW} == 0, -1e9)", "may be attended"),
        (f"scores.masked_fill(~{ROW}.bool(), -1e9)", "may be attended"),
    ],
)
def test_a_mask_that_does_as_its_name_says_is_read(tmp_path: Path, hidden: str, said: str) -> None:
    backend = adapted(tmp_path, "Attention", CODE.replace("HIDDEN", hidden))
    assert said in "\n".join(backend.understood)
    clauses = [f"multi_head_attention.{one}" for one in ("formula", "mask-per-sample")]
    assert broken(backend, *clauses) == []


def test_a_mask_whose_name_says_what_is_hidden_may_be_tested_for_truth(tmp_path: Path) -> None:
    code = CODE.replace("HIDDEN", BY_TRUTH).replace("attention_mask", "key_padding_mask")
    backend = adapted(tmp_path, "Attention", code)
    assert broken(backend, "multi_head_attention.formula") == []


def test_a_mask_that_hides_where_its_name_says_what_is_seen_is_asked_about(tmp_path: Path) -> None:
    # Minus infinity and 0 hide the same keys as True and False, but nothing is added.
    with pytest.raises(Unclear, match="says what may be attended, and a probing call shows one"):
        adapted(tmp_path, "Attention", CODE.replace("HIDDEN", BY_TRUTH))
