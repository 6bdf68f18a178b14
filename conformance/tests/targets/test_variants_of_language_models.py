"""Decoder-only models whose scores are scaled twice, whose heads of keys fail, and the like."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked, asked_or_broken, broken, edited

from attentest.targets.whole import AdaptedWhole

FORMULA = "language_model.formula"
CODE = """
import torch
from torch import nn
from torch.cuda import nvtx


class Attention(nn.Module):
    def __init__(self, width, heads, key_heads):
        super().__init__()
        self.heads, self.shared, self.columns = heads, key_heads or heads, width // heads
        self.q, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.k = nn.Linear(width, self.shared * self.columns)
        self.v = nn.Linear(width, self.shared * self.columns)

    @nvtx.range("attention")
    def forward(self, x, cos, sin, seen):
        q = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            one(x).unflatten(-1, (self.shared, -1)).transpose(1, 2) for one in (self.k, self.v)
        )
        q, k = self.turned(q, cos, sin), self.turned(k, cos, sin)
        k, v = (one.repeat_interleave(self.heads // self.shared, 1) for one in (k, v))
        scores = q @ k.transpose(-2, -1)
        scores = scores / self.columns**0.5
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))

    def turned(self, x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Block(nn.Module):
    def __init__(self, width, heads, hidden, key_heads):
        super().__init__()
        self.attention = Attention(width, heads, key_heads)
        self.norm1, self.norm2 = nn.RMSNorm(width, 1e-6), nn.RMSNorm(width, 1e-6)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x, cos, sin, seen):
        x = x + self.attention(self.norm1(x), cos, sin, seen)
        with nvtx.range("network"):
            return x + self.down(self.up(self.norm2(x)).relu())


class Model(nn.Module):
    def __init__(self, vocab_size, width, num_heads, hidden, n_layers, n_kv_heads=None):
        super().__init__()
        self.embed, self.columns = nn.Embedding(vocab_size, width), width // num_heads
        blocks = [Block(width, num_heads, hidden, n_kv_heads) for _ in range(n_layers)]
        self.blocks, self.norm = nn.ModuleList(blocks), nn.RMSNorm(width, 1e-6)
        self.head = nn.Linear(width, vocab_size)

    def forward(self, tokens, position_ids=None):
        length = tokens.shape[1]
        if position_ids is None:
            position_ids = torch.arange(length, device=tokens.device)[None]
        x = self.embed(tokens)
        steps = torch.arange(0, self.columns, 2, dtype=x.dtype, device=x.device) / self.columns
        angles = (position_ids[..., None].to(x.dtype) * 1e4**-steps)[:, None]
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        cos, sin = angles.cos(), angles.sin()
        for block in self.blocks:
            x = block(x, cos, sin, seen)
        return self.head(self.norm(x))
"""


def test_ranges_of_a_profiler_do_not_matter_on_the_cpu(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "Model", CODE), FORMULA) == []


ONCE = "scores = scores / self.columns**0.5"


@pytest.mark.proof
def test_scores_that_are_scaled_twice_are_named_at_their_line(tmp_path: Path) -> None:
    wrong = edited(CODE, (ONCE, f"{ONCE}\n        scores = scores * self.columns**-0.5"))
    backend = adapted(tmp_path, "Model", wrong)
    assert isinstance(backend, AdaptedWhole)
    assert "divided by sqrt(d_k) twice" in " ".join(backend.assumed)
    assert backend.mistaken is not None
    assert "self.columns**-0.5" in backend.mistaken.code
    assert broken(backend, FORMULA)


@pytest.mark.proof
def test_scores_that_are_divided_by_the_width_at_once_are_a_question(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(edited(CODE, (ONCE, "scores = scores / self.columns")))
    assert "divided by d_k" in asked(f"{tmp_path / 'own.py'}:Model")


REPEATED = "k, v = (one.repeat_interleave(self.heads // self.shared, 1) for one in (k, v))"


@pytest.mark.proof
def test_heads_of_keys_that_fail_in_a_call_are_those_of_queries(tmp_path: Path) -> None:
    source = edited(CODE, (REPEATED, "assert k.shape == q.shape"))
    backend = adapted(tmp_path, "Model", source)
    assert isinstance(backend, AdaptedWhole)
    assert any("as many heads of keys as of queries" in one for one in backend.assumed)
    assert broken(backend, FORMULA) == []
    wrong = "return x + self.down(self.up(x).relu())"
    right = "return x + self.down(self.up(self.norm2(x)).relu())"
    assert asked_or_broken(tmp_path, "Model", source, right, wrong, FORMULA)


PACKED = (
    "seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()",
    """seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()[None]
        gaps = position_ids.diff(dim=-1, prepend=position_ids[:, :1] - 1) != 1
        number = gaps.cumsum(-1)
        if attention_mask is None:
            seen = seen & (number[:, :, None] == number[:, None])
        else:
            seen = seen & attention_mask[:, None].bool()
        seen = (seen | torch.eye(length, dtype=torch.bool, device=x.device))[:, None]""",
)
MASKED = ("position_ids=None):", "attention_mask=None, position_ids=None):")


@pytest.mark.proof
def test_positions_that_separate_documents_without_a_mask_are_consecutive(tmp_path: Path) -> None:
    source = edited(CODE, PACKED, MASKED)
    backend = adapted(tmp_path, "Model", source)
    assert isinstance(backend, AdaptedWhole)
    assert any("begin a document of its own" in one for one in backend.assumed)
    clauses = ("language_model.positions-given", "language_model.left-padding", FORMULA)
    assert broken(backend, *clauses) == []


@pytest.mark.proof
def test_positions_that_hide_tokens_otherwise_do_not_pass(tmp_path: Path) -> None:
    source = edited(CODE, PACKED, MASKED)
    clauses = ("language_model.positions-given", FORMULA)
    right = "!= 1\n        number"
    wrong = "!= 1\n        gaps = gaps | (position_ids == 4)\n        number"
    assert asked_or_broken(tmp_path, "Model", source, right, wrong, *clauses)


WHOLE = (
    "seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()",
    "seen = self.seen",
)
BUILT = (
    "self.head = nn.Linear(width, vocab_size)",
    "self.head = nn.Linear(width, vocab_size)\n"
    "        seen = torch.ones(max_length, max_length, dtype=torch.bool).tril()\n"
    '        self.register_buffer("seen", seen)',
)
LONGEST = ("n_layers, n_kv_heads=None):", "n_layers, max_length, n_kv_heads=None):")


@pytest.mark.proof
def test_model_of_its_greatest_length_alone_is_filled_up(tmp_path: Path) -> None:
    source = edited(CODE, WHOLE, BUILT, LONGEST)
    backend = adapted(tmp_path, "Model", source)
    assert isinstance(backend, AdaptedWhole)
    assert any("are filled up at their end" in one for one in backend.assumed)
    assert broken(backend, FORMULA, "language_model.too-long-input") == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"), [(".tril()", ".triu()"), (".tril()", ".tril(1)"), ("self.norm(x)", "x")]
)
def test_mistake_in_a_model_that_is_filled_up_does_not_pass(
    right: str, wrong: str, tmp_path: Path
) -> None:
    source = edited(CODE, WHOLE, BUILT, LONGEST)
    clauses = (FORMULA, "language_model.parameter-count")
    assert asked_or_broken(tmp_path, "Model", source, right, wrong, *clauses)


def test_norm_with_one_number_for_all_columns_is_named_under_strict(tmp_path: Path) -> None:
    own = "\n\nclass RMSNorm(nn.Module):\n    def __init__(self, width, eps):\n"
    own += "        super().__init__()\n        self.gain = nn.Parameter(torch.tensor(1.0))\n\n"
    own += "    def forward(self, x):\n"
    own += "        return self.gain * x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()\n"
    source = edited(CODE, ("nn.RMSNorm(", "RMSNorm("))
    (tmp_path / "own.py").write_text(source + own)
    said = asked(f"{tmp_path / 'own.py'}:Model", strict=True)
    assert "norm1.gain is one number for all columns" in said


@pytest.mark.proof
def test_model_that_needs_a_mask_of_order_keeps_its_heads_of_keys(tmp_path: Path) -> None:
    source = edited(
        CODE,
        ("def forward(self, tokens, position_ids=None):", "def forward(self, tokens, mask):"),
        ("        if position_ids is None:\n            position", "        position"),
        (
            "seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()",
            "seen = mask",
        ),
    )
    backend = adapted(tmp_path, "Model", source)
    assert backend.choices["key_heads"] == "fewer"
