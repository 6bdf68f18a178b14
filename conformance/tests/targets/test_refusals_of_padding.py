"""Whole models that refuse targets with tokens behind padding: they are given none."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

PLAIN = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
REFUSES = edited(
    PLAIN,
    (
        "        size = tgt.size(1)\n",
        "        real = tgt.ne(self.tgt_pad)\n"
        "        if (~real[:, :-1] & real[:, 1:]).any():\n"
        '            raise ValueError("targets are padded at their ends")\n'
        "        if tgt.min() < 0 or tgt.max() >= self.proj.out_features:\n"
        '            raise ValueError(f"no such token: {tgt.min()} or {tgt.max()}")\n'
        "        size = tgt.size(1)\n",
    ),
)
CLAUSES = ("model.negative-id-refused", "model.out-of-range-refused", "model.formula")


@pytest.mark.proof
def test_model_that_refuses_tokens_behind_padding_is_given_none(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", REFUSES)
    assert "target" in backend.limits.right_padded
    for effort in (0.2, 1.0):
        bench = Bench.for_status(backend, effort=effort)
        assert [judge(bench, one).status for one in CLAUSES] == ["pass"] * 3
