"""Models that score every id for each token and hide no later token."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, edited
from proof import share

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.output = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        weights = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
        return self.output((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.network = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.network(self.norm2(x))


class Network(nn.Module):
    def __init__(self, vocab_size, context_length, width, heads, n_layers):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, width)
        self.places = nn.Embedding(context_length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, x):
        x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
"""

SAID = "depend on later tokens: a mistake if it continues texts"


@pytest.mark.proof
def test_encoder_whose_scores_depend_on_later_tokens_says_so(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Network", CODE)
    assert any(SAID in one for one in backend.assumed)


@pytest.mark.proof
def test_encoder_that_scores_the_whole_text_says_nothing_of_later_tokens(tmp_path: Path) -> None:
    code = edited(CODE, ("self.norm(x))", "self.norm(x).mean(1))"))
    backend = adapted(tmp_path, "Network", code)
    assert not any(SAID in one for one in backend.assumed)


@share(2, rest=1)
@pytest.mark.parametrize("name", ["SLM_model", "TinyLLM", "LMModel"])
def test_small_language_model_that_hides_no_later_token_is_asked_about(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / "own.py"
    file.write_text(edited(CODE, ("class Network", f"class {name}")))
    assert "later tokens are not hidden" in asked(f"{file}:{name}")
