"""Writes the page of the families of models that adapters find in real libraries: a row each.

The page is generated from the verdicts that each folder stores (see docs/families.py), and from its
findings, which contain the reasons found by hand.
"""

import json
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from library_page import NO_BREAK, sentence
from tables import table

from attentest.results.verdict import Status
from attentest_spec import CHOICES

Json = Mapping[str, Any]


def write(root: Path, out: Path) -> Path:
    """Write the page of all families under `root` into `out`."""
    path = out / "families.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = sorted(root.glob("implementations/*/families.json"))
    path.write_text(page(stored), encoding="utf-8")
    return path


def page(stored: list[Path]) -> str:
    """Return the page of the verdicts in these files."""
    parts = [
        "# Families of decoder-only models",
        "Language models of real libraries, built from their own configurations at small sizes "
        "with random weights. Nothing is downloaded. The design choices of a family are read from "
        "its configuration and its modules; a family that no choices of the specification explain "
        "is not judged, and the reason is given. A cell counts the clauses of the chapter "
        "[language_model](chapters/language_model.md) that conform, of those judged. Each clause "
        "was tried on one example or two: a finding that few inputs show may be missing here; "
        "[the results for real libraries](libraries.md) are those of a full run.",
        *(part for path in stored for part in _library(path)),
    ]
    return "\n\n".join(parts) + "\n"


def _library(path: Path) -> Iterator[str]:
    """Yield the parts about the families of one implementation."""
    content = json.loads(path.read_text(encoding="utf-8"))
    versions = ", ".join(f"{name} {one}" for name, one in content["libraries"].items())
    families: Json = content["families"]
    judged = {
        name: one for name, one in families.items() if any("statuses" in v for v in one.values())
    }
    variants = list(dict.fromkeys(variant for one in families.values() for variant in one))
    known = findings(path.parent)
    name = path.parent.name
    yield f"## {name}"
    yield (
        f"{len(judged)} of {len(families)} families are judged ({versions}). "
        f"[The adapter](implementations/{name}.md) says how a model of your own is judged, in "
        "three lines."
    )
    rows = (_row(family, one, variants, known) for family, one in judged.items())
    yield table(["family", *variants, "differs from Llama in", "findings"], rows)
    yield "### Findings"
    yield from (_finding(number, one, judged) for number, one in enumerate(known, 1))
    yield "### Not judged"
    yield table(["reason", "families"], iter(_reasons(families, judged)))


def _row(family: str, variants: Json, names: list[str], known: list[Json]) -> list[str]:
    first = next(one for one in variants.values() if "statuses" in one)
    numbers = sorted(
        {
            number
            for one in variants.values()
            for slug, message in one.get("messages", {}).items()
            for number, finding in enumerate(known, 1)
            if explains(finding, family, slug, message)
        }
    )
    return [
        family,
        *(_count(variants[name]) for name in names),
        _differences(first.get("choices", {})),
        ", ".join(map(str, numbers)) or "none",
    ]


def _count(one: Json) -> str:
    if "statuses" not in one:
        return "not in the library" if "does not support" in one["reason"] else "not judged"
    statuses = [Status(status) for status in one["statuses"].values()]
    judged = [status for status in statuses if status.judged]
    good = sum(status.conforms for status in judged)
    return f"{good} of {len(judged)}".replace(" ", NO_BREAK)


def _differences(choices: Json) -> str:
    return (
        ", ".join(f"{name}: {value}" for name, value in choices.items() if name in CHOICES) or "-"
    )


def _finding(number: int, finding: Json, families: Json) -> str:
    """Return one finding, with the families and clauses that it is about."""
    about = defaultdict(set)
    for family, variants in families.items():
        for variant, one in variants.items():
            for slug, message in one.get("messages", {}).items():
                if explains(finding, family, slug, message):
                    about[slug].add(f"{family} ({variant})")
    clauses = ", ".join(f"{{ref}}`{slug} <{slug}>`" for slug in sorted(about))
    names = sorted(set().union(*about.values()))
    everyone = len({one.partition(" ")[0] for one in names}) == len(families)
    who = "all families" if everyone else ", ".join(names)
    link = f" ([more]({finding['link']}))" if finding.get("link") else ""
    return (
        f"{number}. *{finding['message']}*: {sentence(finding['reason'])}{link} "
        f"Breaks {clauses or 'nothing now'}. Concerns {who or 'no family'}."
    )


def _reasons(families: Json, judged: Json) -> list[list[str]]:
    grouped = defaultdict(list)
    for name, variants in families.items():
        if name not in judged:
            reason = next(iter(variants.values()))["reason"]
            grouped[reason.partition(":")[0] if "settings of" in reason else reason].append(name)
    return [
        [sentence(reason), ", ".join(names)]
        for reason, names in sorted(grouped.items(), key=lambda one: -len(one[1]))
    ]


def findings(folder: Path) -> list[Json]:
    """Return what was examined by hand: a part of a message, and the reason."""
    path = folder / "findings.toml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return list(tomllib.loads(text).get("finding", []))


def explains(finding: Json, family: str, slug: str, message: str) -> bool:
    """Say whether a finding is about this failure of a clause."""
    return (
        finding["message"] in message
        and slug in finding.get("clauses", [slug])
        and family in finding.get("families", [family])
    )
