"""Caches that declare nothing, refuse, or offer less than others: none of them is accused."""

from dataclasses import replace

import pytest

from attentest.faults.unusual import UNUSUAL
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec.torch import TorchBackend

CHOICES = ("cache_positions", "cache_update", "cache_sessions")


def undeclared(name):
    """Return an unusual cache that declares no choice of the chapter."""
    backend = UNUSUAL[name]
    assert isinstance(backend, TorchBackend)
    left = {choice: value for choice, value in backend.choices.items() if choice not in CHOICES}
    return replace(backend, choices=left)


def status(backend, clause):
    """Judge few examples, without a diagnosis."""
    bench = Bench.for_status(backend, effort=0.5)
    return judge(bench, f"cache.{clause}").status


@pytest.mark.parametrize(
    ("name", "clause", "expected"),
    [
        ("static-buffers", "continued-twice", "absent"),
        ("cache-in-the-module", "continued-twice", "absent"),
        ("cache-in-the-module", "sessions", "absent"),
        ("inputs-kept", "sessions", "pass"),
        ("token-by-token", "prompt-padding", "pass"),
        ("token-by-token", "positions-of-padding", "pass"),
    ],
)
def test_undeclared_choice_of_a_cache_is_no_violation(name, clause, expected):
    assert status(undeclared(name), clause) == expected


def test_declared_choice_of_a_cache_is_judged():
    wrong = replace(
        UNUSUAL["static-buffers"],
        choices={**UNUSUAL["static-buffers"].choices, "cache_update": "functional"},
    )
    assert status(wrong, "continued-twice") == "violation"


def test_mild_mask_fill_leaves_caches_unjudged():
    mild = replace(
        UNUSUAL["inputs-kept"], choices={**UNUSUAL["inputs-kept"].choices, "mask_fill": -2.5}
    )
    assert status(mild, "formula") == "absent"
