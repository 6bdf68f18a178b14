"""Numbers that are overwritten in place before their gradient is computed."""

from pathlib import Path

from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

CODE = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.inner(x)
        gate = hidden.sigmoid()
        hidden = hidden * gate
        return self.outer(hidden)
"""
GRADIENT = "feed_forward.gradient"


def test_line_of_an_overwritten_number_is_named(tmp_path: Path) -> None:
    wrong = edited(CODE, ("hidden = hidden * gate", "hidden = gate.mul_(hidden)"))
    bench = Bench.for_status(adapted(tmp_path, "FeedForward", wrong), effort=0.2)
    verdict = judge(bench, GRADIENT)
    line = wrong.splitlines().index("        gate = hidden.sigmoid()") + 1
    assert verdict.where.endswith(f"own.py:{line} in forward")
    assert f"what own.py:{line} computes is overwritten in place" in verdict.message


def test_overwriting_that_no_gradient_needs_is_right(tmp_path: Path) -> None:
    right = edited(CODE, ("hidden = hidden * gate", "hidden = (hidden * gate).mul_(1.0)"))
    bench = Bench.for_status(adapted(tmp_path, "FeedForward", right), effort=0.2)
    assert judge(bench, GRADIENT).status.conforms
