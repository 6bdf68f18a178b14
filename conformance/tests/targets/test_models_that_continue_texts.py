"""Models that are called with the position where their tokens begin: they continue one text."""

from pathlib import Path

import pytest
from torch import nn

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.language_models.construction.building import PROBE
from attentest.targets.language_models.probing import probe_of
from attentest.targets.members import members

CODE = """
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, dim, bias=False)
        self.wv = nn.Linear(dim, dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, start_pos):
        q, k, v = (
            one(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for one in (self.wq, self.wk, self.wv)
        )
        scores = q @ k.mT * k.shape[-1] ** -0.5
        scores = scores.softmax(-1)
        return self.wo((scores @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, dim, multiple_of=256):
        super().__init__()
        inner = multiple_of * ((4 * dim + multiple_of - 1) // multiple_of) if multiple_of else 0
        self.w1 = nn.Linear(dim, inner)
        self.w2 = nn.Linear(inner, dim)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)))


class Block(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.attention, self.feed_forward = Attention(dim, n_heads), FeedForward(dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x, start_pos):
        x = x + self.attention(self.norm1(x), start_pos)
        return x + self.feed_forward(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, vocab_size, dim, n_layers, n_heads):
        super().__init__()
        assert vocab_size != -1, "vocab must be set"
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(Block(dim, n_heads) for _ in range(n_layers))
        self.norm = nn.LayerNorm(dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens, start_pos):
        CHECK
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, start_pos)
        return self.output(self.norm(h))
"""


def saved(folder: Path, check: str) -> str:
    """Return the path of a file with that code in the place of the check."""
    file = folder / "continued.py"
    file.write_text(CODE.replace("CHECK", check))
    return str(file)


ONE = 'assert tokens.shape[1] == 1, "one token at a time"'


@pytest.mark.proof
def test_model_of_one_text_that_hides_no_later_token_is_asked_about_as_one(tmp_path: Path) -> None:
    target = saved(tmp_path, "pass")
    facts = {one.name: one for one in members(target) or []}
    assert facts["Transformer"].component == "language_model"
    with pytest.raises(Unclear, match="of scores of which later tokens are not hidden"):
        attentest.adapted(f"{target}:Transformer")


def test_model_that_takes_one_token_at_a_time_is_judged_by_its_parts(tmp_path: Path) -> None:
    target = saved(tmp_path, ONE)
    facts = {one.name: one for one in members(target) or []}
    assert (facts["Transformer"].component, facts["Attention"].inside) == ("language_model", "")
    with pytest.raises(Unclear, match=r"takes one token at a time, and refuses a whole text \(Ass"):
        attentest.adapted(f"{target}:Transformer")


def test_model_with_a_line_that_fits_one_token_alone_is_asked_about_as_that(tmp_path: Path) -> None:
    target = saved(tmp_path, "torch.zeros(1).view_as(tokens[0])")
    with pytest.raises(Unclear, match=r"raises for every longer one \(Runtime"):
        attentest.adapted(f"{target}:Transformer")


def test_model_with_a_layer_of_no_width_is_probed_all_the_same() -> None:
    probed = probe_of(lambda sizes: nn.Linear(0, sizes.d_model), PROBE)  # type: ignore[arg-type]
    assert [tuple(one.shape) for one in probed.parameters()] == [(96, 0), (96,)]


BODY = """
class OwnModel(nn.Module):
    def __init__(self, vocab_size, dim, n_layers, n_heads):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(Block(dim, n_heads) for _ in range(n_layers))

    def forward(self, input_ids, position_ids=None):
        h = self.embed_tokens(input_ids)
        for layer in self.layers:
            h = layer(h, 0)
        return h


class OwnForCausalLM(nn.Module):
    def __init__(self, vocab_size, dim, n_layers, n_heads, d_rope=32):
        super().__init__()
        assert isinstance(d_rope, int)
        self.model = OwnModel(vocab_size, dim, n_layers, n_heads)
        self.lm_head = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, input_ids, position_ids=None):
        return self.lm_head(self.model(input_ids, position_ids))
"""


def test_body_of_a_model_of_one_text_is_a_part_of_it_and_a_width_no_dropout(tmp_path: Path) -> None:
    file = tmp_path / "body.py"
    file.write_text(CODE.partition("class Transformer")[0] + BODY)
    found = [(one.name, one.component, one.inside) for one in members(str(file)) or []][-2:]
    assert found == [("OwnModel", "", "OwnForCausalLM"), ("OwnForCausalLM", "language_model", "")]
