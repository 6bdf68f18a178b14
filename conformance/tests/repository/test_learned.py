"""What is kept of real libraries is what a run said, and their page shows what is notable."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from folders import REPOSITORY

from attentest_spec.clauses import clauses

sys.path += [str(REPOSITORY / "docs"), str(REPOSITORY / "docs" / "_ext")]

import learned  # type: ignore[import-not-found]  # it stands in docs
import real  # type: ignore[import-not-found]  # it stands in docs/_ext

WITNESS = {"steps": ["call it"], "code": "print(part(1))", "actual": "2", "expected": "1"}
LOOKS = {"kind": "fault", "names": ["a.b"], "text": "scaled by <width>", "difference": 0.0}
CASES = [
    {"clause": "attention.formula", "status": "violation", "message": "off by `1` | <b>"},
    {"clause": "encoder.norm-placement", "status": "deviation", "message": "declared pre"},
    {"clause": "attention.shapes", "status": "pass", "message": ""},
    {"clause": "masks.causal", "status": "absent", "message": "no part"},
]


def events(*cases: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a run of the backend `shipped` with `cases`."""
    more = {"witness": WITNESS, "diagnosis": [{**LOOKS, "missed": 0}]}
    backend = {
        "type": "backend",
        "backend": "shipped",
        "failure": "",
        "title": "a library",
        "components": ["attention", "encoder"],
        "choices": {"norm_placement": "pre"},
        "limits": {},
    }
    told = [{"type": "case", "backend": "shipped", **more, **case} for case in cases]
    return [{"type": "header"}, backend, *told, {"type": "footer"}]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a root with the folders of a library, `shipped`, and of plain code."""
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
    monkeypatch.setattr(learned, "ROOT", tree)
    monkeypatch.setattr(sys, "argv", ["learned.py", mode, str(stream)])
    learned.main()


def test_kept_verdicts_are_those_of_the_run(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    kept = json.loads((tree / "implementations" / "shipped" / "verdicts.json").read_text())
    assert kept["libraries"].keys() == {"numpy"}
    told = kept["backends"]["shipped"]
    assert told["statuses"] == {case["clause"]: case["status"] for case in CASES}
    assert [one["clause"] for one in told["notable"]] == [one["clause"] for one in CASES[:2]]
    assert not (tree / "implementations" / "own" / "verdicts.json").exists()
    run(monkeypatch, tree, "--check", *CASES)
    run(monkeypatch, tree, "--check", CASES[2])  # a part of the clauses was judged


def test_another_verdict_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    with pytest.raises(SystemExit, match=r"formula was violation and is pass.* tox -e shipped"):
        run(monkeypatch, tree, "--check", {**CASES[0], "status": "pass"})


def test_verdicts_that_were_never_kept_are_told(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="was not kept and is pass"):
        run(monkeypatch, tree, "--check", CASES[2])


def test_where_a_library_is_installed_is_not_kept() -> None:
    told = "raised E: no (/home/me/.tox/x/lib/site-packages/a/b.py:1 in f; /x/site-packages/c.py:2)"
    assert learned.without_places(told) == "raised E: no (a/b.py:1 in f; c.py:2)"


def test_run_that_was_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="cut off"):
        learned.verdicts(events()[:-1], ["shipped"])


def test_page_shows_what_is_notable(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    page = real.write(tree, tree / "out").read_text(encoding="utf-8")
    assert "| **all** | 2\N{NO-BREAK SPACE}of\N{NO-BREAK SPACE}3 |" in page
    assert "| violates | 1 |" in page
    assert "**violation** of {ref}`attention.formula <attention.formula>`" in page
    assert "| {ref}`norm_placement <choice-norm_placement>` | `post` | pre |" in page
    assert r"off by \`1\` \| \<b\>. Likely cause: scaled by \<width\>" in page
    assert "```python\nprint(part(1))\n```" in page


def test_page_tells_what_was_found_by_hand(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, tree, "--write", *CASES)
    (tree / "implementations" / "shipped" / "deviations.toml").write_text(
        '[[deviation]]\nclause = "attention.formula"\nowner = "it"\nreason = "It rounds"\n'
        'link = "https://example.org"\nmessage = "off by"\n'
    )
    page = real.write(tree, tree / "out").read_text(encoding="utf-8")
    assert "*Looked at by hand:* It rounds. ([more](https://example.org))" in page
    assert "Likely cause" not in page


KEPT = sorted(REPOSITORY.glob("implementations/*/verdicts.json"))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_what_is_kept_is_of_the_clauses_as_they_are(path: Path) -> None:
    for name, told in json.loads(path.read_text(encoding="utf-8"))["backends"].items():
        changed = set(told["statuses"]) ^ set(clauses())
        assert not changed, f"{name}: ATTENTEST_LEARNED=--write tox -e {path.parent.name}"


def test_every_library_keeps_its_verdicts() -> None:
    kept = {path.parent for path in KEPT}
    assert {folder for folder, _ in learned.libraries(REPOSITORY)} == kept
