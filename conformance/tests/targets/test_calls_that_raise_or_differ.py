"""Decoder-only models that cannot be called as they are, and the questions about them."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
EVERY = ("self.lm_head(x[:, [-1], :]), None", "self.lm_head(x), None")
TRAIN = (
    "    def _init_weights",
    "    def train(self, x, y, epochs=3):\n        return x\n\n    def _init_weights",
)
MODE = (
    "    def _init_weights",
    "    def train(self, mode=True):\n        return super().train(mode)\n\n    def _init_weights",
)
UNCUT = ("self.bias[:, :, :t, :t] == 0", "self.bias == 0")
RANDOM = (
    "self.attn_dropout(functional.softmax(att, dim=-1))",
    "functional.dropout(att.softmax(-1), 0.1)",
)
NAMED = [("config.dropout", "config.attn_p"), ("    dropout: float", "    attn_p: float")]
ALWAYS = (
    "functional.softmax(att, dim=-1))",
    "functional.softmax(att, dim=-1))\n        att = functional.dropout(att, self.attn_dropout.p)",
)


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([TRAIN], r"method train\(self, x, y, epochs=3\) in the place of that of torch"),
        ([UNCUT, EVERY], "logits for a text of its greatest length, and raises for shorter ones"),
        ([RANDOM], "two calls with the same tokens give different logits"),
    ],
)
def test_the_reason_is_named(tmp_path: Path, edits: list[tuple[str, str]], words: str) -> None:
    with pytest.raises(Unclear, match=words):
        adapted(tmp_path, "GPT", edited(NANO, *edits))


@pytest.mark.proof
def test_a_method_that_takes_a_mode_is_none(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "GPT", edited(NANO, MODE)), "language_model.formula")


def test_a_rate_of_attention_is_that_of_dropout(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", edited(NANO, *NAMED))
    assert "attn_p=sizes.dropout" in backend.adapter.building.expression
    assert not broken(backend, "language_model.evaluation-is-deterministic")


@pytest.mark.proof
def test_dropout_in_evaluation_by_such_a_rate_is_a_violation(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "GPT", edited(NANO, *NAMED, ALWAYS))
    assert broken(backend, "language_model.evaluation-is-deterministic")
