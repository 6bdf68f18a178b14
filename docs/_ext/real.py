"""Writes the page of the real libraries: a column each, and what was found in them.

It is made of the verdicts that each folder keeps (see docs/learned.py), and of its expected
failures, which give the reason for what was looked at by hand.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tables import table

from attentest.results.expected_failures import TABLES
from attentest.results.verdict import Status
from attentest_spec import CHOICES, COMPONENTS, Choice
from attentest_spec.clauses import clauses
from attentest_spec.components import CHAPTERS

NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class Kept:
    """One backend of a real library, as it was judged."""

    name: str
    folder: Path
    libraries: Mapping[str, str]
    told: Mapping[str, Any]
    reasons: Mapping[str, Mapping[str, str]]

    @property
    def library(self) -> str:
        """The libraries with their versions."""
        return ", ".join(f"{name} {version}" for name, version in self.libraries.items())

    def where(self, asked: Callable[[Status], bool]) -> list[Mapping[str, Any]]:
        """Return the notable verdicts whose status is as `asked`."""
        return [one for one in self.told["notable"] if asked(Status(one["status"]))]

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """The verdicts that fail a run."""
        return self.where(lambda status: status.fails_run)

    @property
    def deviations(self) -> list[tuple[Choice, str]]:
        """The choices in which it deviates, each with the option that it declares."""
        judged = {choice.clause: choice for choice in CHOICES.values()}
        found = [
            judged[one["clause"]]
            for one in self.where(lambda status: status is Status.DEVIATION)
            if one["clause"] in judged
        ]
        return [(one, self.told["choices"].get(one.name, one.first)) for one in found]


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
        for name, told in sorted(content["backends"].items()):
            found.append(Kept(name, path.parent, content["libraries"], told, reasons(path.parent)))
    return found


def reasons(folder: Path) -> dict[str, Mapping[str, str]]:
    """Return the expected failures in `folder` by clause."""
    path = folder / "deviations.toml"
    declared = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {one["clause"]: one for name in TABLES for one in declared.get(name, [])}


def page(found: list[Kept]) -> str:
    """Return the page."""
    parts = [
        "# Real libraries, judged",
        "Implementations that other people ship, built from configurations with random weights and "
        "held to the same clauses as all others. Each has an adapter of its own and is optional: "
        "`tox -e NAME` installs the library and judges it, and fails where a verdict is no longer "
        "the one that this page is made of.",
        table(SUMMARY, map(_summary, found)),
        "## Chapter by chapter",
        "Clauses that conform of those that were judged, and below them what does not hold; a "
        "dash: the library has no such part.",
        table(["chapter", *(one.name for one in found)], _chapters(found)),
        "## Choice by choice",
        "The options that are not the paper's, declared and shown by the numbers; a dash: the "
        "paper's, or no part that shows it.",
        table(["choice", "paper", *(one.name for one in found)], _by_choice(found)),
        *(_section(one) for one in found),
    ]
    return "\n\n".join(parts) + "\n"


SUMMARY = ["name", "library", "conforms", "deviates from the paper in", "violations", "warnings"]


def _summary(one: Kept) -> list[object]:
    chosen = ", ".join(choice.name for choice, _ in one.deviations)
    return [
        f"{{ref}}`{one.name} <library-{one.name}>`",
        one.library,
        _score(list(one.told["statuses"].values())),
        chosen or "nothing it declares",
        len(one.failures),
        len(one.where(lambda status: status is Status.WARNING)),
    ]


def _clause(slug: str) -> str:
    return f"{{ref}}`{slug} <{slug}>`" if slug in clauses() else f"`{slug}`"


def _score(statuses: list[str]) -> str:
    counted = Counter(statuses)
    judged = sum(number for status, number in counted.items() if Status(status).judged)
    good = sum(number for status, number in counted.items() if Status(status).conforms)
    return f"{good} of {judged}".replace(" ", NO_BREAK) if judged else "-"


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
    yield ["**all**", *(_score(list(one.told["statuses"].values())) for one in found)]
    yield ["violates", *(str(len(one.failures)) for one in found)]


def _by_choice(found: list[Kept]) -> Iterator[list[str]]:
    """Yield a row for every choice in which one of them deviates."""
    shown = [{choice.name: str(value) for choice, value in one.deviations} for one in found]
    for name, choice in CHOICES.items():
        options = [one.get(name, "-") for one in shown]
        if set(options) != {"-"}:
            yield [f"{{ref}}`{name} <choice-{name}>`", f"`{choice.paper}`", *options]


def _section(one: Kept) -> str:
    provided = [f"`{name}`" for name in COMPONENTS if name in one.told["components"]]
    parts = [
        f"(library-{one.name})=\n## {one.name}",
        f"{one.told['title']} ({one.library}). Provides {', '.join(provided)}. "
        f"[How it is adapted](implementations/{one.name}.md).",
        _deviations(one),
        *(_failure(case, one.reasons) for case in one.where(lambda status: status.needs_words)),
    ]
    return "\n\n".join(part for part in parts if part)


def _deviations(one: Kept) -> str:
    rows = [
        (
            f"{{ref}}`{choice.name} <choice-{choice.name}>`",
            f"`{choice.paper}`",
            f"`{option}`",
            _clause(choice.clause),
        )
        for choice, option in one.deviations
    ]
    head = ["it deviates in", "the paper", "it declares, and shows", "judged by"]
    return table(head, iter(rows)) if rows else "It deviates from the paper in nothing it declares."


def _failure(case: Mapping[str, Any], declared: Mapping[str, Mapping[str, str]]) -> str:
    found = f"**{case['status']}** of {_clause(case['clause'])}: {_sentence(case['message'])}"
    known = declared.get(case["clause"])
    why = _by_hand(known) if known else _likely_cause(case)
    return "\n\n".join(filter(None, [f"{found} {why}".strip(), _reproduction(case)]))


def _by_hand(known: Mapping[str, str]) -> str:
    """Return what somebody found who looked at it."""
    link = f" ([more]({known['link']}))" if known.get("link") else ""
    return f"*Looked at by hand:* {_sentence(known['reason'])}{link}"


def _likely_cause(case: Mapping[str, Any]) -> str:
    if case["status"] == "warning":  # what merely should be is no mistake to be named
        return ""
    looks = "; ".join(one["text"] for one in case["diagnosis"])
    return f"Likely cause: {_sentence(looks)}" if looks else ""


def _reproduction(case: Mapping[str, Any]) -> str:
    """Return the code that does it again, folded up: some of it holds a model's weights."""
    code = (case["witness"] or {}).get("code", "")
    if not code:
        return ""
    head = "```{raw} html\n<details><summary>To reproduce</summary>\n```"
    return f"{head}\n\n```python\n{code}\n```\n\n```{{raw}} html\n</details>\n```"


def _sentence(text: str) -> str:
    """Return `text` with one full stop behind it, so that Markdown shows it as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|#$])", r"\\\1", " ".join(text.split())).rstrip(".") + "."
