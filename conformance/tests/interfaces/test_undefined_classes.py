"""`attentest check FILE.py` of a file of which some classes cannot be defined here."""

from pathlib import Path

from click.testing import CliRunner

from attentest.interfaces.cli.main import main
from attentest.targets.members import Member, members

SOURCE = """
import torch
from torch import nn
from package_that_is_missing import Settings


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class ModelSettings(Settings):
    dim: int = 8


class Attention(nn.Module):
    def __init__(self, settings=ModelSettings()):
        super().__init__()


class CausalAttention(Attention):
    pass
"""
WHY = "line 4 raised ModuleNotFoundError: No module named 'package_that_is_missing'"


def test_classes_of_modules_that_cannot_be_defined_are_members(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE, encoding="utf-8")
    found = members(str(tmp_path / "own.py"))
    assert found is not None
    undefined = [Member(name, undefined=WHY) for name in ("Attention", "CausalAttention")]
    assert [one for one in found if one.undefined] == undefined
    assert [one.name for one in found if not one.undefined] == ["RMSNorm"]


def test_classes_that_cannot_be_defined_are_a_question(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(SOURCE, encoding="utf-8")
    result = CliRunner().invoke(main, ["check", str(path), "--clause", "rms_norm.formula"])
    assert result.exit_code == 3, result.output
    said = " ".join(result.output.split())
    assert "RMSNorm rms_norm conforming (1 of 1 judged clauses)" in said
    assert "Attention - not defined: see below" in said
    assert f"Attention, CausalAttention cannot be defined here: in own.py, {WHY}." in said
    assert said.endswith("see the question: Attention, CausalAttention")


def test_class_that_another_statement_defines_is_no_question(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"{SOURCE}\n\nclass Attention(nn.Module):\n    pass\n", encoding="utf-8")
    found = members(str(path)) or []
    assert [one.name for one in found if one.undefined] == ["CausalAttention"]


def test_class_that_fails_by_itself_is_named_with_its_own_failure(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"{SOURCE}\n\nclass Own(nn.Module):\n    half = 1 / 0\n", encoding="utf-8")
    found = {one.name: one.undefined for one in members(str(path)) or []}
    line = SOURCE.count("\n") + 3
    assert found["Own"] == f"line {line} raised ZeroDivisionError: division by zero"
