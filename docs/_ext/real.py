"""Writes the page of the real libraries: a column each, and what was found in them.

It is made of the verdicts that each folder keeps (see docs/learned.py) and of the section of each
README that tells what was looked at by hand.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import table

from attentest_spec import CHOICES, COMPONENTS
from attentest_spec.clauses import clauses
from attentest_spec.components import CHAPTERS

HEADING = "## What the suite found"
FAILURES = ("violation", "error", "timeout", "crash", "suite-bug", "warning")


@dataclass(frozen=True)
class Kept:
    """One backend of a real library, as it was judged."""

    name: str
    folder: Path
    libraries: Mapping[str, str]
    told: Mapping[str, Any]

    @property
    def library(self) -> str:
        """The libraries with their versions."""
        return ", ".join(f"{name} {version}" for name, version in self.libraries.items())

    def of(self, *statuses: str) -> list[Mapping[str, Any]]:
        """Return what is notable and has one of `statuses`."""
        return [one for one in self.told["notable"] if one["status"] in statuses]


def write(root: Path, out: Path) -> Path:
    """Write the page of all that is kept under `root` into `out`."""
    path = out / "libraries.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(kept(root)), encoding="utf-8")
    return path


def kept(root: Path) -> list[Kept]:
    """Return every backend whose verdicts are kept, in order of folders."""
    found = []
    for path in sorted(root.glob("implementations/*/verdicts.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for name, told in content["backends"].items():
            found.append(Kept(name, path.parent, content["libraries"], told))
    return found


def page(found: list[Kept]) -> str:
    """Return the page."""
    parts = [
        "# Real libraries, judged",
        "Implementations that other people ship, built from configurations with random weights and "
        "held to the same clauses as all others. Each has an adapter of its own and is optional: "
        "`tox -e NAME` installs the library and judges it, and fails where a verdict is no longer "
        "the one that this page is made of.",
        table(["", *(one.name for one in found)], iter(_summary(found))),
        "## Chapter by chapter",
        "Clauses that conform of those that were judged; a dash: the library has no such part.",
        table(["", *(one.name for one in found)], iter(_chapters(found))),
        *(_section(one) for one in found),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(found: list[Kept]) -> Iterator[list[str]]:
    yield ["library", *(one.library for one in found)]
    yield ["conforms", *(_score(list(one.told["statuses"].values())) for one in found)]
    yield ["deviates", *(_links(one.of("deviation")) for one in found)]
    yield ["violates", *(_links(one.of(*FAILURES)) for one in found)]


def _links(cases: list[Mapping[str, Any]]) -> str:
    return ", ".join(_clause(one["clause"]) for one in cases) or "nothing"


def _clause(slug: str) -> str:
    return f"{{ref}}`{slug} <{slug}>`" if slug in clauses() else f"`{slug}`"


def _score(statuses: list[str]) -> str:
    counted = Counter(statuses)
    judged = len(statuses) - counted["absent"]
    good = counted["pass"] + counted["deviation"] + counted["warning"]
    return f"{good} of {judged}" if judged else "-"


def _chapters(found: list[Kept]) -> Iterator[list[str]]:
    for chapter in CHAPTERS:
        of = [
            [
                status
                for slug, status in one.told["statuses"].items()
                if slug.partition(".")[0] == chapter
            ]
            for one in found
        ]
        yield [f"[{chapter}](chapters/{chapter}.md)", *map(_score, of)]


def _section(one: Kept) -> str:
    provided = [f"`{name}`" for name in COMPONENTS if name in one.told["components"]]
    parts = [
        f"## {one.name}",
        f"{one.told['title']} ({one.library}). Provides {', '.join(provided)}. "
        f"[How it is adapted](implementations/{one.name}.md).",
        _deviations(one),
        *(_failure(case) for case in one.of(*FAILURES)),
        _by_hand(one),
    ]
    return "\n\n".join(part for part in parts if part)


def _deviations(one: Kept) -> str:
    judged = {choice.clause: choice for choice in CHOICES.values()}
    rows = [
        (
            f"{{ref}}`{choice.name} <choice-{choice.name}>`",
            f"`{choice.paper}`",
            f"`{one.told['choices'].get(choice.name, choice.first)}`",
            _clause(case["clause"]),
        )
        for case in one.of("deviation")
        if (choice := judged.get(case["clause"]))
    ]
    head = ["it deviates in", "the paper", "it declares, and shows", "judged by"]
    return table(head, iter(rows)) if rows else "It deviates from the paper in nothing it declares."


def _failure(case: Mapping[str, Any]) -> str:
    witness = case["witness"] or {"code": ""}
    code = f"\n\n```python\n{witness['code']}\n```" if witness["code"] else ""
    looks = "; ".join(one["text"] for one in case["diagnosis"])
    return (
        f"**{case['status']}** of {_clause(case['clause'])}: {_plain(case['message'])}"
        + (f" Looks like: {_plain(looks)}." if looks else "")
        + code
    )


def _plain(text: str) -> str:
    """Return `text` so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#$])", r"\\\1", " ".join(text.split()))


def _by_hand(one: Kept) -> str:
    """Return what the README of its folder tells of the surprises."""
    readme = (one.folder / "README.md").read_text(encoding="utf-8")
    _, found, rest = readme.partition(HEADING)
    return re.split(r"^## ", rest, flags=re.MULTILINE)[0].strip() if found else ""
