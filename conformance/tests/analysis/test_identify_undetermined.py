"""Choices of code with a mistake in its formula are not determined, and contradict nothing."""

from pathlib import Path

from click.testing import CliRunner

import attentest
from attentest.analysis.identify.finding import NONE_FITS, UNDETERMINED, Finding, with_undetermined
from attentest.interfaces.cli.main import main

WRONG = """
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        return self.o(((q @ k.mT).softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def finding(choice: str, reason: str) -> Finding:
    return Finding(choice, "d/h", None, NONE_FITS, reason)


def test_choices_with_one_reason_are_not_determined() -> None:
    found = {name: finding(name, "together") for name in ("head_width", "projection_bias")}
    assert {one.status for one in with_undetermined(found).values()} == {UNDETERMINED}
    assert all(one.agrees for one in with_undetermined(found).values())


def test_choice_that_fails_alone_contradicts_what_is_declared() -> None:
    found = {"head_width": finding("head_width", "one"), "output": finding("output", "other")}
    assert with_undetermined(found) == found
    assert not found["head_width"].agrees


def test_command_and_function_answer_alike(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(WRONG)
    target = f"{file}:MultiHeadAttention"
    assert attentest.identify(target)["projection_bias"].status == UNDETERMINED
    result = CliRunner().invoke(main, ["identify", target])
    assert result.exit_code == 1
    assert "is determined" in result.output
    assert "NOT AS DECLARED" not in result.output
