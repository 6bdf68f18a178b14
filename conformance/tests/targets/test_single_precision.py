"""Code that computes in float32 in part is judged in it, and its mistakes are found."""

import sys

from folders import SUPPORT

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))


def test_attention_with_a_scale_in_single_precision_is_judged_in_it():
    target = str(WILD / "published.py:scaled_dot_product_attention")
    read = attentest.adapted(target)
    said = "\n".join(read.understood)
    assert "assumed that it computes in float32" in said
    assert "softmax_arithmetic" not in said
    strict = attentest.adapted(target, strict=True)
    for backend, status in ((read, "pass"), (strict, "violation")):
        bench = Bench(backend, shrink=False, diagnose=False, effort=0.1)
        assert judge(bench, "attention.formula").status == status


def test_code_that_computes_in_single_precision_is_judged_in_it():
    target, slug = str(WILD / "published.py:LayerNormFp32"), "layer_norm.formula"
    report = attentest.check(target, clauses=[slug, "layer_norm.gain-and-bias"])
    assert "assumed that it computes in float32" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert report.compared == 2
    strict = attentest.check(target, "layer_norm", strict=True, clauses=[slug])
    assert strict[slug].status == "violation"


def test_mistake_in_code_that_computes_in_single_precision_is_found():
    target, slug = str(WILD / "published.py:BlurredNorm"), "layer_norm.formula"
    report = attentest.check(target, "layer_norm", clauses=[slug])
    assert report[slug].status == "violation"
