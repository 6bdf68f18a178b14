"""Factors of paths, embeddings and logits: the rest of a model is judged with 1 for each."""

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited
from proof import share

CODE = """
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class GPTConfig:
    vocab_size: int = 65
    block_size: int = 64
    n_layer: int = 4
    n_head: int = 4
    n_embd: int = 64
    residual_multiplier: float = 0.22
    embedding_scale: float = 12.0
    logits_scaling: float = 8.0


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        width = cfg.n_embd
        self.heads, self.share = cfg.n_head, cfg.residual_multiplier
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.one, self.two = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x):
        b, t, width = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2)
                   for one in self.packed(x).chunk(3, -1))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = torch.ones(t, t, device=x.device).triu(1).bool()
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(b, t, width))

    def forward(self, x):
        x = x + self.share * self.attend(self.one(x))
        return x + self.share * self.down(F.gelu(self.up(self.two(x))))


class GPT(nn.Module):
    def __init__(self, cfg: GPTConfig):
        super().__init__()
        self.cfg = cfg
        self.table = nn.Embedding(cfg.vocab_size, cfg.n_embd)
        self.places = nn.Embedding(cfg.block_size, cfg.n_embd)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.n_layer)])
        self.norm, self.head = nn.LayerNorm(cfg.n_embd), nn.Linear(cfg.n_embd, cfg.vocab_size)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.table(tokens) * self.cfg.embedding_scale + self.places(places)
        return self.head(self.norm(self.blocks(x))) / self.cfg.logits_scaling
"""
FORMULA = "language_model.formula"


@pytest.mark.proof
def test_model_with_factors_is_judged_with_1_for_each(tmp_path):
    backend = adapted(tmp_path, "GPT", CODE)
    said = "\n".join(backend.assumed)
    for name in ("residual_multiplier", "embedding_scale", "logits_scaling"):
        assert f"not compared: the factor {name}" in said
    assert broken(backend, FORMULA) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("q.shape[-1] ** 0.5", "width**0.5"),
        ("x + self.share * self.attend(self.one(x))", "self.share * self.attend(self.one(x))"),
        ("self.two(x)", "self.one(x)"),
    ],
)
def test_mistake_in_a_model_with_factors_is_reported(tmp_path, right, wrong):
    assert asked_or_broken(tmp_path, "GPT", CODE, right, wrong, FORMULA)


def test_factors_are_a_question_under_strict(tmp_path):
    (tmp_path / "own.py").write_text(CODE)
    assert "no option" in asked(f"{tmp_path / 'own.py'}:GPT", strict=True)


def test_factor_of_a_formula_is_no_factor_of_a_path(tmp_path):
    wrong = edited(
        CODE,
        ("residual_multiplier", "attn_scale"),
        ("self.share * ", ""),
        ("/ q.shape[-1] ** 0.5", "* self.share"),
    )
    (tmp_path / "own.py").write_text(wrong)
    assert "no option" in asked(f"{tmp_path / 'own.py'}:GPT")
