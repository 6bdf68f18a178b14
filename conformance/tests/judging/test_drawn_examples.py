"""The examples that a seed draws: they depend on nothing else, and leave nothing behind."""

import importlib

from oracle_backend import OracleBackend

from attentest.judging.bench import Bench
from attentest.judging.examples import try_examples
from attentest.judging.registry import Check

LARGE = 10**6


def test_examples_depend_on_the_seed_alone(tmp_path, monkeypatch):
    """Code that is judged, and its constants, is a loaded module; so is an editable install."""
    before = drawn()
    constants = ", ".join(map(str, range(LARGE // 2, LARGE // 2 + 200)))
    (tmp_path / "code_with_constants.py").write_text(f"CONSTANTS = ({constants})\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    importlib.import_module("code_with_constants")
    assert drawn() == before
    assert not (tmp_path / ".hypothesis").exists()


def drawn() -> list[int]:
    numbers = []
    check = Check(
        "attention.formula",
        lambda subject, draw: numbers.append(draw.integer(0, LARGE)),
        300,
        __name__,
        "body",
    )
    bench = Bench.for_status(OracleBackend())
    try_examples(bench, check, bench.subject())
    return numbers
