"""Judges the families of models that an adapter finds in a library, and stores the verdicts.

`python docs/families.py --check FOLDER` judges the families of one implementation and fails where a
verdict differs from the stored ones; `--write` stores them in its folder, as `families.json`. An
implementation announces its families in the entry-point group `attentest.families`: a function
that returns for each name another one, which returns for each variant a backend, or the reason why
there is none. The documentation shows the stored verdicts.

A check judges a few clauses of one family in four, and all clauses of all with `--all`. `--effort`
multiplies the number of examples, and `--seeds N` judges with the seeds 0 to N - 1.
"""

import argparse
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import entry_points
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
from families_page import explains, findings
from learned import versions, without_paths, write

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import select
from attentest_spec import Backend, Choices
from attentest_spec.profiles import profile_of

REPOSITORY = Path(__file__).resolve().parents[1]
GROUP = "attentest.families"
STORED = "families.json"
EFFORT = 0.2
"""The number of examples of a usual run, as a part of that of `attentest run`."""

QUICK = tuple(
    f"language_model.{one}"
    for one in ("formula", "left-padding", "positions-given", "causality", "parameter-count")
)
"""The clauses that are judged where not all are asked for: those that show a wrong reading."""

PART = 4
"""One family in so many is judged where not all clauses are asked for."""

LLAMA = Choices.of(profile_of("llama").choices)
_ARITHMETIC = (
    "rms_arithmetic",
    "softmax_arithmetic",
    "rotary_arithmetic",
    "rms_epsilon",
    "rms_cast",
)
"""Choices that say how the library computes, and not which design a family has."""

Json = dict[str, Any]
Family = Callable[[], Mapping[str, Backend | str]]


def main() -> None:
    """Check or store the verdicts on the families of the folder that is named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    modes = parser.add_mutually_exclusive_group(required=True)
    modes.add_argument("--check", action="store_true")
    modes.add_argument("--write", action="store_true")
    parser.add_argument("--all", action="store_true", help="judge every clause, and not a few")
    parser.add_argument("--effort", type=float, default=EFFORT)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="judge these families alone")
    asked = parser.parse_args()
    folder = REPOSITORY / "implementations" / asked.folder
    families = announced(asked.folder)
    if not families:
        return
    every = asked.all or asked.write
    wanted = [one for one in families if not asked.only or one in asked.only]
    wanted = wanted if every or asked.only else wanted[::PART]
    found = judged(asked.folder, wanted, asked.effort, range(asked.seeds), () if every else QUICK)
    if wrong := unexplained(found, findings(folder)):
        print("Not explained by findings.toml: examine each by hand.", *wrong, sep="\n  ")
    if asked.write:
        text = (folder / "pyproject.toml").read_text(encoding="utf-8")
        libraries = versions(tomllib.loads(text)["project"])
        before = _stored(folder / STORED) if asked.only else {}
        write(folder / STORED, {"libraries": libraries, "families": {**before, **found}})
    if wrong or (asked.check and not same(folder / STORED, found, asked.seeds)):
        sys.exit(1)


def announced(name: str) -> Mapping[str, Family]:
    """Return the families that the implementation `name` announces; none for most."""
    found: dict[str, Family] = {}
    for entry in entry_points(group=GROUP, name=name):
        found |= entry.load()()
    return found


def judged(
    folder: str, names: list[str], effort: float, seeds: range, clauses: tuple[str, ...]
) -> Json:
    """Return what is found of each family, judged in as many processes as there are cores."""
    workers = min(os.cpu_count() or 1, 2)
    tasks = [(folder, name, effort, seeds, clauses) for name in names]
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        return dict(zip(names, pool.map(_judged, *zip(*tasks, strict=True)), strict=True))


def _judged(folder: str, name: str, effort: float, seeds: range, clauses: tuple[str, ...]) -> Json:
    variants = announced(folder)[name]()
    found: Json = {}
    for variant, backend in variants.items():
        if isinstance(backend, str):
            found[variant] = {"reason": without_paths(backend)}
        else:
            found[variant] = _verdicts(backend, effort, seeds, clauses)
    return found


def _verdicts(backend: Backend, effort: float, seeds: range, clauses: tuple[str, ...]) -> Json:
    """Return the status of every clause, and the words for what fails under any of the seeds."""
    slugs = select(list(backend.components), clauses)
    statuses: dict[str, str] = {}
    messages: dict[str, str] = {}
    for seed in seeds:
        bench = Bench(backend, seed=seed, effort=effort, shrink=False, diagnose=False)
        for slug in slugs:
            verdict = judge(bench, slug)
            if slug not in statuses or verdict.status.needs_words:
                statuses[slug] = str(verdict.status)
            if verdict.status.needs_words:
                messages[slug] = f"{without_paths(verdict.message)} (seed {seed})"
    choices = {name: one for name, one in backend.choices.items() if one != LLAMA[name]}
    return {
        "title": backend.title,
        "choices": {name: choices[name] for name in choices if name not in _ARITHMETIC},
        "statuses": statuses,
        "messages": messages,
    }


def unexplained(found: Json, known: list[Mapping[str, str]]) -> list[str]:
    """Return the failures that no finding explains."""
    return [
        f"{name} {variant}: {slug}: {message}"
        for name, variants in found.items()
        for variant, one in variants.items()
        for slug, message in one.get("messages", {}).items()
        if not any(explains(finding, name, slug, message) for finding in known)
    ]


def same(path: Path, found: Json, seeds: int) -> bool:
    """Say whether the statuses are the stored ones, and print those that differ.

    Under several seeds a clause may fail that passed under the first one.
    """
    stored = _stored(path)
    differing = [
        f"{name} {variant}"
        for name, variants in found.items()
        for variant, one in variants.items()
        if seeds == 1 and _differs(one, stored.get(name, {}).get(variant, {}))
    ]
    if differing:
        print(f"These differ from {path.name}:", *differing, sep="\n  ")
    return not differing


def _stored(path: Path) -> Json:
    found: Json = json.loads(path.read_text(encoding="utf-8"))["families"]
    return found


def _differs(one: Json, stored: Json) -> bool:
    """Say whether a status of the judged clauses is another one than that stored."""
    before = stored.get("statuses", {})
    now: Json = one.get("statuses", {})
    return bool(now) != bool(before) or any(before.get(slug) != now[slug] for slug in now)


if __name__ == "__main__":
    main()
