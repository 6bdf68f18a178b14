"""The stored verdicts on families of models, and the page that has a row for each."""

import json
import sys
from pathlib import Path

import pytest
from folders import REPOSITORY

from attentest_spec.clauses import clauses

sys.path += [str(REPOSITORY / "docs"), str(REPOSITORY / "docs" / "_ext")]

import families  # type: ignore[import-not-found]  # a module of docs
import families_page  # type: ignore[import-not-found]  # a module of docs/_ext

FOUND = {
    "sound": {
        "eager": {
            "title": "Sound",
            "choices": {"rotary_pairs": "adjacent"},
            "statuses": {"language_model.formula": "pass", "language_model.shapes": "absent"},
            "messages": {},
        },
        "fused": {"reason": "Sound does not support it"},
    },
    "broken": {
        "eager": {
            "title": "Broken",
            "choices": {},
            "statuses": {"language_model.formula": "violation", "language_model.shapes": "pass"},
            "messages": {"language_model.formula": "The output differs by 3 (seed 0)"},
        },
        "fused": {"reason": "Broken does not support it"},
    },
    "other": {
        "eager": {"reason": "it has experts"},
        "fused": {"reason": "it has experts"},
    },
}
FINDING = '[[finding]]\nmessage = "differs by 3"\nreason = "known"\nfamilies = ["broken"]\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the folder of an implementation with stored verdicts on three families."""
    made = tmp_path / "implementations" / "mine"
    made.mkdir(parents=True)
    content = {"libraries": {"library": "1.0"}, "families": FOUND}
    (made / "families.json").write_text(json.dumps(content), encoding="utf-8")
    (made / "findings.toml").write_text(FINDING, encoding="utf-8")
    return made


def test_page_has_a_row_for_every_judged_family(folder: Path, tmp_path: Path) -> None:
    text = families_page.write(tmp_path, tmp_path / "out").read_text(encoding="utf-8")
    assert "2 of 3 families are judged (library 1.0)" in text
    (sound,) = [line for line in text.splitlines() if line.startswith("| sound")]
    assert "not in the library" in sound
    assert "rotary_pairs: adjacent" in sound
    assert "1. *differs by 3*: known." in text
    assert "Concerns broken (eager)." in text
    assert "| it has experts. | other |" in text


def test_failure_without_a_finding_is_reported(folder: Path) -> None:
    known = families_page.findings(folder)
    assert families.unexplained(FOUND, known) == []
    (line,) = families.unexplained(FOUND, [])
    assert line.startswith("broken eager: language_model.formula: The output differs")
    assert families.unexplained(FOUND, [{**known[0], "families": ["sound"]}])


def test_other_statuses_than_the_stored_ones_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = json.loads(json.dumps(FOUND))
    assert families.same(folder / "families.json", changed, 1)
    changed["sound"]["eager"]["statuses"]["language_model.shapes"] = "pass"
    assert not families.same(folder / "families.json", changed, 1)
    assert "sound eager" in capsys.readouterr().out


STORED = sorted(REPOSITORY.glob("implementations/*/families.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_stored_verdicts_are_of_known_clauses_and_explained(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))["families"]
    judged = [one for variants in found.values() for one in variants.values() if "statuses" in one]
    assert judged
    assert all(one["statuses"].keys() <= clauses().keys() for one in judged)
    assert not families.unexplained(found, families_page.findings(path.parent))
