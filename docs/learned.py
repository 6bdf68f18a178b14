"""Keeps what the suite finds in a real library beside its adapter, as `verdicts.json`.

Called by tox on what `attentest run --json FILE` wrote: `python docs/learned.py --check FILE` fails
where the verdicts are no longer those that are kept, and `--write` keeps them. Only implementations
whose library comes as an extra are concerned. The documentation shows what is kept, so that it can
be built where none of the libraries is installed.
"""

import json
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from attentest.results.verdict import Status

ROOT = Path(__file__).resolve().parents[1]
KEPT = "verdicts.json"

Json = dict[str, Any]


def main() -> None:
    """Check or keep the verdicts in the stream that is named."""
    mode, file = sys.argv[1:]
    if mode not in ("--check", "--write"):
        sys.exit(f"{mode} is neither --check nor --write.")
    events = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    for folder, project in libraries(ROOT):
        told = verdicts(events, backends_of(project))
        if told and mode == "--check":
            check(folder / KEPT, told)
        elif told:
            write(folder / KEPT, {"libraries": versions(project), "backends": told})


def write(path: Path, content: Json) -> None:
    """Write what is kept, one line a value, so that a change shows as one."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def libraries(root: Path) -> Iterator[tuple[Path, Json]]:
    """Yield the folder and the project table of every implementation with the extra `library`."""
    for path in sorted(root.glob("implementations/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        if "library" in project.get("optional-dependencies", {}):
            yield path.parent, project


def backends_of(project: Mapping[str, Any]) -> list[str]:
    """Return the names of the backends that a project announces."""
    return list(project.get("entry-points", {}).get("attentest.backends", {}))


def versions(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the installed versions of what the extra `library` asks for."""
    asked = (Requirement(one).name for one in project["optional-dependencies"]["library"])
    return {name: version(name) for name in asked}


def verdicts(events: list[Json], names: list[str]) -> dict[str, Json]:
    """Return what a stream says of the backends `names`: each clause, and more of what is notable.

    Raises ValueError for a stream that was cut off.
    """
    if not events or events[-1]["type"] != "footer":
        raise ValueError("The stream has no footer: the run was cut off.")
    told: dict[str, Json] = {}
    for event in events:
        if event["type"] == "backend" and event["backend"] in names and not event["failure"]:
            kept = ("title", "components", "choices", "limits")
            told[event["backend"]] = {name: event[name] for name in kept} | {
                "statuses": {},
                "notable": [],
            }
        if event["type"] == "case" and event["backend"] in told:
            _add(told[event["backend"]], event)
    return told


def _add(backend: Json, case: Json) -> None:
    backend["statuses"][case["clause"]] = case["status"]
    if Status(case["status"]) not in (Status.PASS, Status.ABSENT):
        kept = ("clause", "status", "message", "witness", "diagnosis")
        found = {name: case[name] for name in kept}
        backend["notable"].append({**found, "message": without_places(case["message"])})


def without_places(text: str) -> str:
    """Return `text` without the folders of the machine in which libraries are installed."""
    return re.sub(r"/[^\s;()]*/site-packages/", "", text)


def check(path: Path, told: Mapping[str, Json]) -> None:
    """Fail where a clause has another status than the one kept in `path`."""
    kept = json.loads(path.read_text(encoding="utf-8"))["backends"] if path.exists() else {}
    for name, backend in told.items():
        before = kept.get(name, {"statuses": {}})["statuses"]
        changed = [
            f"{clause} was {before.get(clause, 'not kept')} and is {status}"
            for clause, status in backend["statuses"].items()
            if before.get(clause) != status
        ]
        if changed:
            sys.exit(
                f"{name} gets other verdicts than those in {path.name} of its folder: "
                f"{'; '.join(changed)}. Look at each by hand, then keep them with "
                f"ATTENTEST_LEARNED=--write tox -e {path.parent.name}."
            )


def totals(backend: Mapping[str, Any]) -> Counter[str]:
    """Return how many clauses of each status a kept backend has."""
    return Counter(backend["statuses"].values())


if __name__ == "__main__":
    main()
