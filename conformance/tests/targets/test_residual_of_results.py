"""Residual connections that take the result of a sublayer, `AddNorm(x, sublayer(x))`."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from proof import share

from attentest.targets.adapt import Unclear

CODE = """
from torch import nn


class AddNorm(nn.Module):
    def __init__(self, norm_shape, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ln = nn.LayerNorm(norm_shape)

    def forward(self, X, Y):
        return self.ln(self.dropout(Y) + X)
"""
FORMULA = "residual.formula"
BRANCH = "residual.dropout-on-branch-alone"


@pytest.mark.parametrize("names", [("X", "Y"), ("residual", "x"), ("x", "sublayer_output")])
def test_sum_of_an_input_and_a_result_is_judged(tmp_path: Path, names: tuple[str, str]) -> None:
    first, second = names
    code = CODE.replace("X", first).replace("Y", second)
    backend = adapted(tmp_path, "AddNorm", code)
    assert f"{second} is the result of the sublayer and {first} its input" in backend.assumed[0]
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, FORMULA) == []
    assert broken(backend, BRANCH) == []


def test_dropout_of_the_input_is_a_violation(tmp_path: Path) -> None:
    code = CODE.replace("self.dropout(Y) + X", "self.dropout(X) + Y")
    assert broken(adapted(tmp_path, "AddNorm", code), BRANCH)


@share(2)
@pytest.mark.parametrize(
    "wrong",
    ["self.ln(self.dropout(Y)) + X", "self.ln(self.dropout(Y) + Y)", "self.ln(2 * Y + X)"],
)
def test_another_sum_is_a_question(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "AddNorm", CODE.replace("self.ln(self.dropout(Y) + X)", wrong))


def test_names_that_do_not_say_which_is_the_result_are_a_question(tmp_path: Path) -> None:
    code = CODE.replace("X", "a").replace("Y", "b")
    with pytest.raises(Unclear, match="nothing in it says which argument is"):
        adapted(tmp_path, "AddNorm", code)
    with pytest.raises(Unclear):
        adapted(tmp_path, "AddNorm", CODE, strict=True)
