"""Encodings that return the table alone are judged as their callers use them."""

import pytest
import torch
from folders import SUPPORT
from torch import nn

import attentest
from attentest.harness.subject import Subject
from attentest.targets.adapt.writing import values as writing
from attentest_spec import Sizes

FILE = SUPPORT / "wild" / "returned_tables.py"
SOME = ("formula", "added", "shapes", "too-long", "prefix", "gradient-is-identity", "follows-moves")
ADDED = "which its caller adds to the input"


@pytest.mark.parametrize("name", ["PositionalEncoding", "Rows", "SequenceFirst", "Repeated"])
def test_encoding_that_returns_the_table_conforms(name: str) -> None:
    slugs = [f"positional_encoding.{one}" for one in SOME]
    report = attentest.check(f"{FILE}:{name}", "positional_encoding", clauses=slugs)
    assert ADDED in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert all(not verdict.status.broken for verdict in report), str(report)


def test_sum_that_was_forgotten_is_an_assumption_and_strict_reports_it() -> None:
    target, formula = f"{FILE}:Repeated", "positional_encoding.added"
    report = attentest.check(target, "positional_encoding", clauses=[formula])
    assert "if it is meant to return the sum, this is a mistake" in "\n".join(report.inferred)
    judged = attentest.check(target, "positional_encoding", strict=True, clauses=[formula])
    assert judged[formula].status == "violation"


@pytest.mark.parametrize("name", ["OneBehind", "CosinesFirst"])
def test_mistake_in_a_returned_table_is_found(name: str) -> None:
    declared = {"position_offset": "none", "positional_encoding": "interleaved"}
    formula = "positional_encoding.formula"
    report = attentest.check(
        f"{FILE}:{name}", formula.split(".")[0], choices=declared, clauses=[formula]
    )
    assert report[formula].status == "violation"


def test_reproduction_adds_the_table_to_the_input() -> None:
    subject = Subject(attentest.adapted(f"{FILE}:Rows", "positional_encoding"))
    part = subject.part("positional_encoding", Sizes(d_model=4, heads=1, max_length=8))
    x = torch.ones(1, 3, 4, dtype=torch.float64).numpy()
    output = part.output(x)
    held: dict[str, object] = {}
    code = subject.record.counterexample().code.replace("print(", "shown = (")
    exec(code, held)
    assert torch.equal(held["shown"], torch.from_numpy(output))  # type: ignore[arg-type]


def test_equal_numbers_are_written_as_one() -> None:
    for one in (torch.zeros(9, 9), torch.full((70,), -torch.inf), torch.ones(80, dtype=torch.long)):
        text = writing.tensor(one)
        assert len(text) < 60
        assert torch.equal(eval(text, {"torch": torch}), one)


class InSingle(nn.Module):
    """Returns a table in float32, which its caller casts as it likes."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.waves = [10_000 ** (-2 * (one // 2) / d_model) for one in range(d_model)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.size(1), device=x.device, dtype=torch.float32)[:, None]
        angles = places * torch.tensor(self.waves, device=x.device)
        even = torch.arange(len(self.waves), device=x.device) % 2 == 0
        return torch.where(even, angles.sin(), angles.cos())[None]


def test_table_in_single_precision_is_added_in_that_of_the_input() -> None:
    slug = "positional_encoding.half-precision"
    report = attentest.check(InSingle, "positional_encoding", clauses=[slug])
    assert ADDED in "\n".join(report.inferred)
    assert report[slug].status == "pass", report[slug]
