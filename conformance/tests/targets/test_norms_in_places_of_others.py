"""Whole models whose layers call one norm in the place of another: the line of that call."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

SOURCE = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
BEFORE, AFTER = SOURCE.split("class DecBlock", 1)
NAMES = {"add_norm1": "masked_attn_norm", "add_norm2": "attn_norm", "add_norm3": "ff_norm"}
for old, new in NAMES.items():
    AFTER = AFTER.replace(old, new)
NAMED = f"{BEFORE}class DecBlock{AFTER}"


@pytest.mark.proof
def test_line_that_calls_a_norm_in_the_place_of_another_is_named(tmp_path: Path) -> None:
    call = "self.attn_norm(y, self.attention2("
    mistaken = edited(NAMED, (call, call.replace("attn_norm", "masked_attn_norm")))
    bench = Bench.for_status(adapted(tmp_path, "TransformerMT", mistaken), effort=0.2)
    verdict = judge(bench, "model.formula")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is None or "attention1" not in verdict.location.code


@pytest.mark.proof
def test_norms_with_names_that_say_no_order_are_placed(tmp_path: Path) -> None:
    bench = Bench.for_status(adapted(tmp_path, "TransformerMT", NAMED), effort=0.2)
    assert judge(bench, "model.formula").status is Status.PASS
