"""The shared generators while examples are run: seeded alike for each, and restored."""

import random

import numpy as np
import pytest
from oracle_backend import OracleBackend

from attentest.harness.process_state import read_random_states
from attentest.judging import random_state
from attentest.judging.bench import Bench
from attentest.judging.examples import try_examples
from attentest.judging.registry import Check


def drawn(number: int) -> list[tuple[float, float]]:
    """Return what each of `number` examples draws from the two generators."""
    seen: list[tuple[float, float]] = []

    def body(*_: object) -> None:
        seen.append((random.random(), float(np.random.random())))

    bench = Bench.for_status(OracleBackend())
    check = Check("attention.formula", body, number, __name__, "body")
    try_examples(bench, check, bench.subject())
    return seen


def test_every_example_draws_what_the_first_one_draws() -> None:
    every = drawn(5)
    random.seed(0)
    np.random.seed(0)
    assert every == [(random.random(), float(np.random.random()))] * 5


def test_generators_are_restored_after_the_examples() -> None:
    before = read_random_states()
    drawn(2)
    assert read_random_states() == before


def test_generators_are_seeded_by_other_versions_of_hypothesis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = drawn(3)
    monkeypatch.setattr(random_state, "_REPLACED", ())
    assert drawn(3) == ours
