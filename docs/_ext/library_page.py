"""Writes the page of the real libraries: one column each, and their violations.

The page is generated from the verdicts that each folder stores (see docs/learned.py), and from its
expected failures, which contain the reasons found by hand.
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
from attentest_spec.clauses import KINDS, clauses
from attentest_spec.components import CHAPTERS

NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class Library:
    """One backend of a real library, with its stored verdicts."""

    name: str
    folder: Path
    libraries: Mapping[str, str]
    stored: Mapping[str, Any]
    reasons: Mapping[str, Mapping[str, str]]

    @property
    def library(self) -> str:
        """The libraries with their versions."""
        return ", ".join(f"{name} {version}" for name, version in self.libraries.items())

    def where(self, asked: Callable[[Status], bool]) -> list[Mapping[str, Any]]:
        """Return the notable cases whose status is as `asked`."""
        return [one for one in self.stored["notable"] if asked(Status(one["status"]))]

    def of_kind(self, kind: str) -> list[str]:
        """Return the statuses of the clauses of `kind`."""
        known, stored = clauses(), self.stored["statuses"]
        return [stored[slug] for slug in stored if slug in known and known[slug].kind == kind]

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """The cases that fail a run."""
        return self.where(lambda status: status.fails_run)

    @property
    def deviations(self) -> list[tuple[Choice, str]]:
        """The choices in which it deviates, each with the option that it declares."""
        judged = {choice.clause: choice for choice in CHOICES.values()}
        cases = self.where(lambda status: status is Status.DEVIATION)
        slugs = [one["clause"] for one in cases if one["clause"] in judged]
        declared = self.stored["choices"]
        return [
            (judged[slug], declared.get(judged[slug].name, judged[slug].first)) for slug in slugs
        ]


def write(root: Path, out: Path) -> Path:
    """Write the page of all libraries under `root` into `out`."""
    path = out / "libraries.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(libraries(root)), encoding="utf-8")
    return path


def libraries(root: Path) -> list[Library]:
    """Return every backend with stored verdicts, in order of folders."""
    backends = []
    for path in sorted(root.glob("implementations/*/verdicts.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for name, stored in sorted(content["backends"].items()):
            known = reasons(path.parent)
            backends.append(Library(name, path.parent, content["libraries"], stored, known))
    return backends


def reasons(folder: Path) -> dict[str, Mapping[str, str]]:
    """Return the expected failures that `folder` declares, by clause."""
    path = folder / "deviations.toml"
    declared = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {one["clause"]: one for name in TABLES for one in declared.get(name, [])}


def page(backends: list[Library]) -> str:
    """Return the page."""
    parts = [
        "# Results for real libraries",
        "Implementations that other people publish, built from configurations with random weights "
        "and judged by the same clauses as all others. Each has its own adapter and is optional: "
        "`tox -e NAME` installs the library, judges it, and fails if a verdict differs from those "
        "on this page.",
        "The columns `values` (the numbers), `robustness` (what has to hold around them) and "
        "`errors` (what is refused) count the clauses of each kind that conform, of those judged.",
        table(SUMMARY, map(_summary, backends)),
        "## Chapters",
        "The number of clauses that conform, of those that were judged, and the number of "
        "violations. A dash means that the library does not have the component.",
        table(["chapter", *(one.name for one in backends)], _chapters(backends)),
        "## Choices",
        f"The options that differ from {PAPER}, as declared; the numbers agree with them. A dash "
        "means the option of the paper, or that no component depends on the choice.",
        table(["choice", "paper", *(one.name for one in backends)], _by_choice(backends)),
        *(_section(one) for one in backends),
    ]
    return "\n\n".join(parts) + "\n"


PAPER = "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)"
SUMMARY = [
    "name",
    "library",
    *KINDS,
    "conforms",
    "deviates from the paper in",
    "violations",
    "warnings",
]


def _summary(one: Library) -> list[object]:
    chosen = ", ".join(choice.name for choice, _ in one.deviations)
    return [
        f"{{ref}}`{one.name} <library-{one.name}>`",
        one.library,
        *(_score(one.of_kind(kind)) for kind in KINDS),
        _score(list(one.stored["statuses"].values())),
        chosen or "no declared choice",
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


def _chapters(backends: list[Library]) -> Iterator[list[str]]:
    for chapter in CHAPTERS:
        of = [
            [
                status
                for slug, status in one.stored["statuses"].items()
                if slug.partition(".")[0] == chapter
            ]
            for one in backends
        ]
        yield [f"[{chapter}](chapters/{chapter}.md)", *map(_score, of)]
    yield ["**all**", *(_score(list(one.stored["statuses"].values())) for one in backends)]
    yield ["violations", *(str(len(one.failures)) for one in backends)]


def _by_choice(backends: list[Library]) -> Iterator[list[str]]:
    """Yield a row for every choice in which a backend deviates."""
    shown = [{choice.name: str(value) for choice, value in one.deviations} for one in backends]
    for name, choice in CHOICES.items():
        options = [one.get(name, "-") for one in shown]
        if set(options) != {"-"}:
            yield [f"{{ref}}`{name} <choice-{name}>`", f"`{choice.paper}`", *options]


def _section(one: Library) -> str:
    provided = [f"`{name}`" for name in COMPONENTS if name in one.stored["components"]]
    parts = [
        f"(library-{one.name})=\n## {one.name}",
        f"{one.stored['title']} ({one.library}). Provides {', '.join(provided)}. "
        f"[Its adapter](implementations/{one.name}.md).",
        _deviations(one),
        *(_failure(case, one.reasons) for case in one.where(lambda status: status.needs_words)),
    ]
    return "\n\n".join(part for part in parts if part)


def _deviations(one: Library) -> str:
    rows = [
        (
            f"{{ref}}`{choice.name} <choice-{choice.name}>`",
            f"`{choice.paper}`",
            f"`{option}`",
            _clause(choice.clause),
        )
        for choice, option in one.deviations
    ]
    head = ["deviation in", "paper", "declared and measured", "judged by"]
    return table(head, iter(rows)) if rows else "No declared choice differs from the paper."


def _failure(case: Mapping[str, Any], declared: Mapping[str, Mapping[str, str]]) -> str:
    finding = f"**{case['status']}** of {_clause(case['clause'])}: {sentence(case['message'])}"
    known = declared.get(case["clause"])
    why = _by_hand(known) if known else _likely_cause(case)
    return "\n\n".join(filter(None, [f"{finding} {why}".strip(), _reproduction(case)]))


def _by_hand(known: Mapping[str, str]) -> str:
    """Return the reason that somebody found by hand."""
    link = f" ([more]({known['link']}))" if known.get("link") else ""
    return f"*Examined by hand:* {sentence(known['reason'])}{link}"


def _likely_cause(case: Mapping[str, Any]) -> str:
    if case["status"] == "warning":  # a SHOULD that is not met has no fault as its cause
        return ""
    causes = "; ".join(one["text"] for one in case["diagnosis"])
    return f"Likely cause: {sentence(causes)}" if causes else ""


def _reproduction(case: Mapping[str, Any]) -> str:
    """Return the code of the reproduction, collapsed: it can contain the weights of a model."""
    code = (case["witness"] or {}).get("code", "")
    if not code:
        return ""
    head = "```{raw} html\n<details><summary>To reproduce</summary>\n```"
    return f"{head}\n\n```python\n{code}\n```\n\n```{{raw}} html\n</details>\n```"


def sentence(text: str) -> str:
    """Return `text` with one full stop at its end, escaped for Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>|#$])", r"\\\1", " ".join(text.split())).rstrip(".") + "."
