"""The causes that the parts of a whole show are tried first where the whole fails."""

from dataclasses import replace

from attentest.judging.earlier import Earlier
from attentest.judging.run import run
from attentest.results.plan import Plan, select
from attentest.results.verdict import LikelyCause, Location, Status, Verdict

FILE = """
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{d_model} columns cannot be divided among {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.output = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.query(query), self.key(key), self.value(value)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = q @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        mixed = scores.softmax(-1) @ v
        return self.output(mixed.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.first, self.second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, mask))
        return self.norm2(x + self.second(torch.relu(self.first(x))))
"""
CAUSE = LikelyCause("fault", ("attention.scale-missing",), "no scale")
LINE = Location("mine.py", 7, "q @ k", "scaled scores", "scores / 2", "", confirmed=True)


def _verdict(**fields):
    return Verdict("mine.py:Part", "attention.formula", Status.VIOLATION, "wrong", **fields)


def test_known_causes_and_unexplained_lines_are_handed_on():
    similar = LikelyCause("complaint", ("attention.mask-ignored",), "a similar message")
    explained = _verdict(diagnosis=(CAUSE,), location=LINE)
    assert Earlier.of([explained]) == Earlier((CAUSE.names,), (("mine.py", 7, "scaled scores"),))
    other = replace(LINE, line=9, step="layers.0.scores")
    unexplained = _verdict(diagnosis=(similar,), location=other)
    assert Earlier.of([unexplained]) == Earlier(lines=(("mine.py", 9, "scores"),))
    found = Earlier.of([explained, unexplained, explained])
    assert found.suspects == (CAUSE.names,)
    assert len(found.lines) == 2
    assert Earlier.from_dict(found.as_dict()) == found


def test_suspected_lines_are_searched_for_again():
    suspected = Location("mine.py", 7, "q @ k", "scaled scores", "scores / 2", "")
    assert Earlier.of([_verdict(location=suspected)]) == Earlier()
    nearest = replace(CAUSE, missed=2)
    found = Earlier.of([_verdict(location=suspected, diagnosis=(nearest,))])
    assert found == Earlier(suspects=(CAUSE.names,))


def test_cause_of_a_part_is_handed_to_what_holds_it(tmp_path, monkeypatch):
    asked: dict[str, Earlier] = {}
    real = Earlier.of

    def noted(verdicts):
        found = real(verdicts := list(verdicts))
        asked[",".join(sorted({one.backend.rpartition(":")[2] for one in verdicts}))] = found
        return found

    monkeypatch.setattr(Earlier, "of", noted)
    file = tmp_path / "mine.py"
    file.write_text(FILE, encoding="utf-8")
    slugs = select(slugs=["multi_head_attention.formula", "encoder.layer-formula"])
    targets = [f"{file}:MultiHeadAttention", f"{file}:EncoderLayer"]
    result = run(targets, Plan(slugs, reading={}), workers=2)
    statuses = [[one.status for one in backend.verdicts] for backend in result.backends]
    assert statuses == [["violation", "absent"], ["absent", "violation"]]
    assert asked.pop("") == Earlier()
    (found,) = asked.values()
    assert found.suspects == (CAUSE.names,)
    assert [line for _, line, _ in found.lines] == [25]
