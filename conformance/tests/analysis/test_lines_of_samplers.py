"""Lines of wrong samplers: filters of logits, and tokens drawn from sorted probabilities."""

from functools import partial
from pathlib import Path

import pytest

import attentest

FILTERS = """
import torch


def keep(logits, top_k=0, top_p=1.0):
    if top_k > 0:
        values, _ = torch.topk(logits, min(top_k, logits.size(-1)))
        logits = torch.where(logits < values[:, -1:], float("-inf"), logits)
    if top_p < 1.0:
        ranked, order = torch.sort(logits, descending=True)
        total = torch.cumsum(torch.softmax(ranked, dim=-1), dim=-1)
        drop = total > top_p
        drop[:, 1:] = drop[:, :-1].clone()
        drop[:, 0] = False
        hidden = drop.scatter(1, order, drop)
        logits = logits.masked_fill(hidden, float("-inf"))
    return logits


def sample(logits, temperature=1.0, top_k=0, top_p=1.0):
    logits = logits / temperature
    logits = keep(logits, top_k, top_p)
    return torch.multinomial(torch.softmax(logits, dim=-1), num_samples=1)
"""

SORTED = """
import torch


def sample(logits, temperature, top_p):
    probs = torch.softmax(logits / temperature, dim=-1)
    ranked, order = torch.sort(probs, dim=-1, descending=True)
    total = torch.cumsum(ranked, dim=-1)
    ranked[total - ranked > top_p] = 0.0
    ranked.div_(ranked.sum(dim=-1, keepdim=True))
    place = torch.multinomial(ranked, num_samples=1)
    return torch.gather(order, -1, place)
"""


def causes(folder: Path, code: str, right: str, wrong: str) -> list[tuple[int | None, bool]]:
    """Return the lines of the causes of `sample` with `wrong` in the place of `right`."""
    assert right in code
    path = folder / "samplers.py"
    path.write_text(code.replace(right, wrong, 1), encoding="utf-8")
    found = attentest.check(f"{path}:sample").causes
    return [(one.line, one.confirmed) for one in found if one.severity.fails_run]


proof = partial(pytest.param, marks=pytest.mark.proof)


@pytest.mark.parametrize("code", [FILTERS, SORTED])
def test_correct_samplers_have_no_cause(tmp_path: Path, code: str) -> None:
    assert causes(tmp_path, code, "sample", "sample") == []


@pytest.mark.parametrize(
    ("code", "right", "wrong", "line", "confirmed"),
    [
        (FILTERS, "logits / temperature", "logits * temperature", 21, True),
        proof(FILTERS, "values[:, -1:]", "values[:, :1]", 8, False),
        (SORTED, "logits / temperature", "logits", 6, True),
        proof(SORTED, "descending=True", "descending=False", 7, False),
        proof(SORTED, "total - ranked > top_p", "total - ranked < top_p", 9, False),
    ],
)
def test_the_line_of_a_mistake_is_the_first(
    tmp_path: Path, code: str, right: str, wrong: str, line: int, confirmed: bool
) -> None:
    assert causes(tmp_path, code, right, wrong)[0] == (line, confirmed)


@pytest.mark.parametrize(
    ("code", "right", "wrong"),
    [
        proof(FILTERS, "dim=-1), dim=-1)", "dim=-1), dim=0)"),
        proof(FILTERS, "drop.scatter(1, order, drop)", "drop"),
        (SORTED, "torch.gather(order, -1, place)", "place"),
    ],
)
def test_a_line_that_may_be_a_consequence_is_not_confirmed(
    tmp_path: Path, code: str, right: str, wrong: str
) -> None:
    found = causes(tmp_path, code, right, wrong)
    assert found
    assert not any(confirmed for _, confirmed in found)
