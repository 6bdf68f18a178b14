"""Whole models that round a scale to float32, and have another mistake: its line is named."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

ANNOTATED = (SUPPORT / "wild_models/annotated.py").read_text(encoding="utf-8")


@pytest.mark.proof
def test_line_of_a_rounded_scale_is_not_that_of_padding_that_is_seen(tmp_path: Path) -> None:
    mistaken = edited(
        ANNOTATED,
        ("/ math.sqrt(self.d_k)", "/ torch.sqrt(torch.tensor(self.d_k, dtype=torch.float32))"),
        ("self.encode(src, src_mask)", "self.encode(src, torch.ones_like(src_mask))"),
    )
    bench = Bench.for_status(adapted(tmp_path, "make_model", mistaken), effort=0.2)
    for clause in ("model.formula", "model.padding-in-a-batch"):
        verdict = judge(bench, clause)
        assert verdict.status is Status.VIOLATION
        assert verdict.location is None or "torch.sqrt" not in verdict.location.code
