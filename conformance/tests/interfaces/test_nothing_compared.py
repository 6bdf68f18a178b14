"""A verdict without numbers is none: every interface says so."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from projects import ran

import attentest
from attentest.interfaces.cli.main import main

torch.set_num_threads(1)
pytest_plugins = ["pytester"]

BLOCK = """
import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, n_embd, n_head, block_size):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.n_head = n_head
        self.register_buffer("past", torch.ones(block_size, block_size).tril() == 1)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), Back(n_embd))

    def attn(self, x):
        B, T, C = x.size()
        q, k, v = (
            one.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for one in self.c_attn(x).split(C, dim=2)
        )
        scores = (q @ k.transpose(-2, -1)) * (k.size(-1) ** -0.5)
        weights = scores.masked_fill(~self.past[:T, :T], float("-inf")).softmax(-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(B, T, C))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class Back(nn.Module):
    # A shape of weights that nothing else has: its map is not found.
    def __init__(self, n_embd):
        super().__init__()
        self.folded = nn.Parameter(torch.randn(n_embd, 2, 2, n_embd) / n_embd)

    def forward(self, x):
        return torch.einsum("btf,fd->btd", x, self.folded.reshape(-1, x.size(-1) // 4))
"""
NOTHING = "NO NUMBERS WERE COMPARED"
FEW = ("--effort", "0.1")


@pytest.fixture
def target(tmp_path: Path) -> str:
    block = "import attentest" + BLOCK + "backend = attentest.adapted(EncoderLayer, anyway=True)\n"
    (tmp_path / "gpt.py").write_text(block)
    return f"{tmp_path}/gpt.py:backend"


def last_sentences(output: str) -> str:
    """Return what the output ends with: that nothing was compared, behind the last count."""
    said = " ".join(output.split())
    assert NOTHING in said
    assert said.rindex(NOTHING) > said.rindex("judged clauses conform")
    return said[said.rindex(NOTHING) :]


def test_check_says_that_no_numbers_were_compared(target: str) -> None:
    result = CliRunner().invoke(main, ["check", target, *FEW])
    assert result.exit_code == 3, result.output
    last = last_sentences(result.stdout)
    assert "it has no parameter map" in last
    assert "attentest new" in last


@pytest.mark.proof
def test_run_says_that_no_numbers_were_compared(target: str) -> None:
    result = CliRunner().invoke(main, ["run", target, *FEW])
    assert result.exit_code == 3, result.output
    last_sentences(result.stdout)


def test_report_in_python_has_compared_nothing(target: str) -> None:
    report = attentest.check(target)
    assert report.conforms
    assert report.compared == 0
    last_sentences(str(report))


def test_pytest_says_that_no_numbers_were_compared(target: str, pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nattentest_backend = {target}")
    result = ran(pytester, "-q", "--attentest-effort=0.1")
    result.stdout.fnmatch_lines([f"*{NOTHING}*"])
