"""The stored verdicts on real libraries, and the page that shows the notable ones."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from folders import REPOSITORY

from attentest_spec.clauses import clauses

sys.path += [str(REPOSITORY / "docs"), str(REPOSITORY / "docs" / "_ext")]

import learned  # type: ignore[import-not-found]  # a module of docs
import library_page  # type: ignore[import-not-found]  # a module of docs/_ext

WITNESS = {"steps": ["call it"], "code": "print(part(1))", "actual": "2", "expected": "1"}
LIKELY_CAUSE = {"kind": "fault", "names": ["a.b"], "text": "scaled by <width>", "difference": 0.0}
CASES = [
    {"clause": "attention.formula", "status": "violation", "message": "off by `1` | <b>"},
    {"clause": "encoder.norm-placement", "status": "deviation", "message": "declared pre"},
    {"clause": "attention.shapes", "status": "pass", "message": ""},
    {"clause": "masks.causal", "status": "absent", "message": "no part"},
]


def events(*cases: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a run of the backend `shipped` with `cases`."""
    more = {"witness": WITNESS, "diagnosis": [{**LIKELY_CAUSE, "missed": 0}]}
    backend = {
        "type": "backend",
        "backend": "shipped",
        "failure": "",
        "title": "a library",
        "components": ["attention", "encoder"],
        "choices": {"norm_placement": "pre"},
        "limits": {},
    }
    judged = [{"type": "case", "backend": "shipped", **more, **case} for case in cases]
    return [{"type": "header"}, backend, *judged, {"type": "footer"}]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a root with the folders of a library, `shipped`, and of plain code, `own`."""
    for name, extra in (
        ("shipped", '\n[project.optional-dependencies]\nlibrary = ["numpy>=1"]'),
        ("own", ""),
    ):
        folder = tmp_path / "implementations" / name
        folder.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(
            f'[project]\nname = "x"\n{extra}\n[project.entry-points."attentest.backends"]\n'
            f'{name} = "x:y"\n'
        )
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, tree: Path, mode: str, *cases: dict[str, Any]) -> None:
    stream = tree / "run.jsonl"
    stream.write_text("\n".join(json.dumps(event) for event in events(*cases)))
    monkeypatch.setattr(learned, "REPOSITORY", tree)
    monkeypatch.setattr(sys, "argv", ["learned.py", mode, str(stream)])
    learned.main()


def test_stored_verdicts_are_those_of_the_run(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    content = json.loads((tree / "implementations" / "shipped" / "verdicts.json").read_text())
    assert content["libraries"].keys() == {"numpy"}
    stored = content["backends"]["shipped"]
    assert stored["statuses"] == {case["clause"]: case["status"] for case in CASES}
    assert [one["clause"] for one in stored["notable"]] == [one["clause"] for one in CASES[:2]]
    assert not (tree / "implementations" / "own" / "verdicts.json").exists()
    run(monkeypatch, tree, "--check", *CASES)
    run(monkeypatch, tree, "--check", CASES[2])  # a part of the clauses was judged


def test_different_verdict_fails(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    with pytest.raises(SystemExit, match=r"formula was violation and is pass.* tox -e shipped"):
        run(monkeypatch, tree, "--check", {**CASES[0], "status": "pass"})


def test_new_verdict_fails(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match="was not stored and is pass"):
        run(monkeypatch, tree, "--check", CASES[2])


def test_paths_of_installed_libraries_are_not_stored() -> None:
    message = "raised E: no (/home/me/x/lib/site-packages/a/b.py:1 in f; /x/site-packages/c.py:2)"
    assert learned.without_paths(message) == "raised E: no (a/b.py:1 in f; c.py:2)"


def test_incomplete_run_is_refused() -> None:
    with pytest.raises(ValueError, match="incomplete"):
        learned.verdicts(events()[:-1], ["shipped"])


def test_page_shows_notable_verdicts(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    page = library_page.write(tree, tree / "out").read_text(encoding="utf-8")
    assert "| **all** | 2\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}3 |" in page
    assert "| violations | 1 |" in page
    assert "**violation** of {ref}`attention.formula <attention.formula>`" in page
    assert "| {ref}`norm_placement <choice-norm_placement>` | `post` | pre |" in page
    assert r"off by \`1\` \| \<b\>. Likely cause: scaled by \<width\>" in page
    assert "```python\nprint(part(1))\n```" in page


def test_page_shows_reasons_found_by_hand(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    (tree / "implementations" / "shipped" / "deviations.toml").write_text(
        '[[deviation]]\nclause = "attention.formula"\nowner = "it"\nreason = "It rounds"\n'
        'link = "https://example.org"\nmessage = "off by"\n'
    )
    page = library_page.write(tree, tree / "out").read_text(encoding="utf-8")
    assert "*Examined by hand:* It rounds. ([more](https://example.org))" in page
    assert "Likely cause" not in page


STORED = sorted(REPOSITORY.glob("implementations/*/verdicts.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_stored_verdicts_cover_all_clauses(path: Path) -> None:
    for name, stored in json.loads(path.read_text(encoding="utf-8"))["backends"].items():
        changed = set(stored["statuses"]) ^ set(clauses())
        assert not changed, f"{name}: ATTENTEST_LEARNED=--write tox -e {path.parent.name}"


def test_every_library_has_stored_verdicts() -> None:
    stored = {path.parent for path in STORED}
    assert {folder for folder, _ in learned.libraries(REPOSITORY)} == stored
