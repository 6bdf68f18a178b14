"""Whole models with a head of several layers: what is before the head is judged."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited

PLAIN = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
LINEAR = "self.proj = nn.Linear(hidden_size, tgt_vocab)"
HEAD = """self.proj = nn.Sequential(
            nn.Linear(hidden_size, 3 * hidden_size),
            nn.GELU(),
            nn.LayerNorm(3 * hidden_size),
            nn.Linear(3 * hidden_size, tgt_vocab),
        )"""
SEVERAL = edited(PLAIN, (LINEAR, HEAD))
SAID = "not compared: proj (a head of 2 matrices"


@pytest.mark.proof
def test_head_of_several_layers_is_left_out_and_the_rest_is_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", SEVERAL)
    assert any(one.startswith(SAID) for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.pickle", "model.tying")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("math.sqrt(hidden // self.heads)", "math.sqrt(hidden)"),
        ("return self.ln(x + self.drop(update))", "return self.ln(x) + self.drop(update)"),
        ("return self.proj(y)", "return self.proj(y.cumsum(1))"),
        ("return self.proj(y)", "return self.proj(y.flip(0))"),
    ],
)
def test_mistake_before_such_a_head_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "TransformerMT", SEVERAL, right, wrong, "model.formula")


@pytest.mark.proof
def test_head_that_mixes_the_steps_is_not_left_out(tmp_path: Path) -> None:
    mixing = edited(
        SEVERAL,
        ("nn.GELU(),", "Mixing(),"),
        (
            "class Feed(",
            "class Mixing(nn.Module):\n    def forward(self, x):\n"
            "        return x + x.mean(1, keepdim=True)\n\n\nclass Feed(",
        ),
    )
    right, wrong = "x.mean(1, keepdim=True)", "x.mean(1, keepdim=True).exp()"
    assert asked_or_broken(tmp_path, "TransformerMT", mixing, right, wrong, "model.formula")
