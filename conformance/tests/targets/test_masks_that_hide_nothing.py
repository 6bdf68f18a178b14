"""Whole models whose attention fills its masked scores with a number that hides nothing."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

MODEL = (SUPPORT / "wild_models" / "composed.py").read_text(encoding="utf-8")
NAME = "Seq2SeqTransformer"


@pytest.mark.proof
@pytest.mark.parametrize("number", ["-1e-12", "1e-9"])
def test_fill_that_hides_nothing_is_a_violation(number: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, NAME, edited(MODEL, ("mask == 0, -1e10", f"mask == 0, {number}")))
    assert broken(backend, "model.formula")


@pytest.mark.proof
def test_fill_of_the_size_of_scores_is_a_question(tmp_path: Path) -> None:
    source = edited(MODEL, ("mask == 0, -1e10", "mask == 0, -0.5"))
    with pytest.raises(Unclear, match=r"fills its masked scores with -0\.5"):
        adapted(tmp_path, NAME, source)
    backend = adapted(tmp_path, NAME, source, choices={"mask_fill": -0.5})
    assert backend.choices["mask_fill"] == -0.5


OPTIONAL = edited(
    MODEL,
    (
        "def forward(self, src, trg):\n        src_mask",
        "def forward(self, src, trg, trg_mask=None):\n        if trg_mask is None:\n"
        "            trg_mask = self.make_trg_mask(trg)\n        src_mask",
    ),
    (
        "src_mask, trg_mask = self.make_src_mask(src), self.make_trg_mask(trg)",
        "src_mask = self.make_src_mask(src)",
    ),
)


@pytest.mark.proof
def test_mask_that_the_call_makes_where_it_gets_none_is_not_asked_for(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, NAME, OPTIONAL), "model.formula")
    wrong = edited(OPTIONAL, ("torch.softmax(energy, dim=-1)", "torch.softmax(energy, dim=-2)"))
    assert broken(adapted(tmp_path, NAME, wrong), "model.formula")
