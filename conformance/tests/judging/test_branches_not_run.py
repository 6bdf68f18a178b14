"""Branches of the user's code that no judged call runs, and what the report says about them."""

import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import attentest
from attentest.judging import executed
from attentest.judging.executed import Executed, _is_compiled
from attentest.results import stream
from attentest.results.branches import Branch, not_run, sentence

CODE = """
import warnings

import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, gated=False):
        super().__init__()
        self.gated = gated
        if gated:
            self.gate = nn.Linear(d_model, d_ff)
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        if x.shape[-1] != self.inner.in_features:
            raise ValueError(f"{x.shape[-1]} columns, and not {self.inner.in_features}")
        if not torch.jit.is_scripting() and x.dim() > 9:
            x = x * 2
        if x.numel() == 12345:
            warnings.warn("an odd number")
        if self.gated:
            return self.outer(self.gate(x).sigmoid() * self.inner(x))
        return self.outer(self.inner(x).relu())

    def unused(self, x):
        if x is None:
            x = 1
        return x
"""


@pytest.fixture(autouse=True)
def _uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this process may have compiled a function by torch."""
    monkeypatch.setattr(executed, "_is_compiled", lambda: False)


@pytest.fixture(name="file")
def _file(tmp_path: Path) -> Path:
    file = tmp_path / "networks.py"
    file.write_text(CODE, encoding="utf-8")
    return file


def line_of(code: str) -> int:
    """Return the number of the first line that holds `code`."""
    return next(number for number, one in enumerate(CODE.splitlines(), 1) if code in one)


def test_a_switch_that_is_off_leaves_one_branch_that_is_listed(file: Path) -> None:
    report = attentest.check(f"{file}:FeedForward")
    (backend,) = report.run
    (left,) = not_run(backend.branches)
    assert (left.first, left.last) == (line_of("self.gate(x)"), line_of("self.gate(x)"))
    assert (left.condition, left.given) == ("self.gated", "gated=True")
    assert report.conforms
    place = f"{file}:{left.first} (self.gated; --give gated=True judges it)"
    said = f"not judged, since no judged call ran it: {place}"
    assert said in " ".join(report.text(width=300).split())


def test_no_branch_is_left_where_the_switch_is_on_but_the_other_one(file: Path) -> None:
    report = attentest.check(f"{file}:FeedForward", given={"gated": True}, anyway=True)
    (backend,) = report.run
    (left,) = not_run(backend.branches)
    assert (left.first, left.condition) == (line_of("self.inner(x).relu()"), "else of self.gated")
    assert not left.given  # its default


def test_classes_of_one_file_run_branches_of_each_other(file: Path) -> None:
    other = CODE + (
        "\n\nclass GatedFeedForward(FeedForward):\n"
        "    def __init__(self, d_model, d_ff):\n"
        "        super().__init__(d_model, d_ff, gated=True)\n"
    )
    file.write_text(other, encoding="utf-8")
    report = attentest.check(str(file))
    assert len(list(report.run)) == 2
    branches = [branch for one in report.run for branch in one.branches]
    assert any(one.ran for one in branches)
    assert not_run(branches) == []


def test_branches_are_in_the_stream(file: Path) -> None:
    report = attentest.check(f"{file}:FeedForward", clauses=["feed_forward.formula"])
    again = stream.parsed(stream.text(report.run), "a stream")
    (kept,), (own,) = again, report.run
    assert "(self.gated; --give gated=True judges it)" in kept.left_out
    assert kept.branches == own.branches != ()


def test_a_branch_inside_of_one_that_was_not_run_is_left_out() -> None:
    outer, inner = Branch("a.py", 3, 9, "x"), Branch("a.py", 4, 5, "y")
    later, other = Branch("a.py", 12, 12, "z"), Branch("b.py", 4, 5, "y")
    assert not_run([later, inner, other, outer, inner]) == [outer, later, other]
    assert not_run([outer, Branch("a.py", 3, 9, "x", ran=True)]) == []


def test_the_sentence_counts_what_it_does_not_list() -> None:
    several = [Branch("a.py", 10 * one, 10 * one + 4, f"x == {one}") for one in range(1, 4)]
    assert sentence([], 2) == ""
    assert sentence(several[:1], 2).endswith("a.py:10-14 (x == 1)")
    assert sentence(several, 2).endswith("a.py:20-24 (x == 2) and 1 place more, listed by --full")


def test_calls_are_not_traced_where_a_debugger_traces() -> None:
    observed, seen = Executed("own.py"), []

    def tracer(*event: object) -> None:
        seen.append(event)

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with observed.watch():
            assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)
    assert observed.branches() == ()
    with observed.watch():
        line_of("import warnings")
    assert observed.branches() == ()  # the first call may have run what the second did not


def test_code_that_torch_compiles_has_no_branches(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executed, "_is_compiled", _is_compiled)
    counters = defaultdict(Counter, {"frames": Counter(total=1)})
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))
    (backend,) = attentest.check(f"{file}:FeedForward", clauses=["feed_forward.formula"]).run
    assert backend.branches == ()


def test_import_of_the_compiler_hides_no_branches(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executed, "_is_compiled", _is_compiled)
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=counters))
    (backend,) = attentest.check(f"{file}:FeedForward", clauses=["feed_forward.formula"]).run
    assert backend.branches


def test_branches_of_installed_packages_are_not_those_of_the_user() -> None:
    observed = Executed("own.py")
    with observed.watch():
        assert pytest.approx(1.0) == line_of("import warnings") / 2
    assert {Path(one.file).name for one in observed.branches()} <= {Path(__file__).name}
