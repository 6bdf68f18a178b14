"""Whole models that shift their target themselves, and models that return a loss alone."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked, broken, edited

PLAIN = (SUPPORT / "wild_models" / "plain_ids.py").read_text(encoding="utf-8")
START = (
    "        memory = self.encoder(src_ids)\n",
    "        first = torch.full_like(tgt_ids[:, :1], 1)\n"
    "        tgt_ids = torch.cat([first, tgt_ids[:, :-1]], dim=1)\n"
    "        memory = self.encoder(src_ids)\n",
)
SHIFTED = edited(PLAIN, START)


def test_model_that_shifts_its_target_is_a_question(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SHIFTED)
    question = asked(f"{tmp_path / 'own.py'}:Translator")
    assert "shifts its target itself" in question
    assert "--anyway" in question


@pytest.mark.proof
def test_model_that_shifts_its_target_is_judged_anyway(tmp_path: Path) -> None:
    assert broken(adapted(tmp_path, "Translator", SHIFTED, anyway=True), "model.formula")


@pytest.mark.proof
def test_mask_that_hides_the_own_token_is_no_shift(tmp_path: Path) -> None:
    """Its residual connection carries the token all the same: this is a mistake."""
    mask = ("triu(1)", "triu(1) | torch.eye(size, dtype=torch.bool) & (torch.arange(size) > 0)")
    backend = adapted(tmp_path, "Translator", edited(PLAIN, mask))
    assert broken(backend, "model.formula")


def test_model_that_returns_a_loss_alone_is_asked_for_its_output(tmp_path: Path) -> None:
    states = "        return functional.log_softmax(self.head(states), dim=-1)\n"
    loss = (
        "        logits = self.head(states).transpose(1, 2)\n"
        "        return functional.cross_entropy(logits, tgt_ids, ignore_index=0)\n"
    )
    (tmp_path / "own.py").write_text(edited(PLAIN, (states, loss)))
    assert "it is one number, as a loss" in asked(f"{tmp_path / 'own.py'}:Translator")
