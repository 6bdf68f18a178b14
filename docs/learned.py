"""Stores the verdicts on a real library in the folder of its adapter, as `verdicts.json`.

Called by tox on the output of `attentest run --json FILE`: `python docs/learned.py --check FILE`
fails if the verdicts differ from the stored ones, and `--write` stores them. It handles only
implementations whose library is an extra. The documentation shows the stored verdicts, so that it
can be built without the libraries.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from attentest.results.verdict import Status

REPOSITORY = Path(__file__).resolve().parents[1]
STORED = "verdicts.json"

Json = dict[str, Any]


def main() -> None:
    """Check or store the verdicts of the stream that is named."""
    mode, file = sys.argv[1:]
    if mode not in ("--check", "--write"):
        sys.exit(f"{mode} is neither --check nor --write.")
    events = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    for folder, project in libraries(REPOSITORY):
        backends = verdicts(events, backends_of(project))
        if backends and mode == "--check":
            check(folder / STORED, backends)
        elif backends:
            write(folder / STORED, {"libraries": versions(project), "backends": backends})


def write(path: Path, content: Json) -> None:
    """Write `content` with one value per line, so that differences are easy to read."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def libraries(root: Path) -> Iterator[tuple[Path, Json]]:
    """Yield the folder and the project table of every implementation with the extra `library`."""
    for path in sorted(root.glob("implementations/*/pyproject.toml")):
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        if "library" in project.get("optional-dependencies", {}):
            yield path.parent, project


def backends_of(project: Mapping[str, Any]) -> list[str]:
    """Return the names of the backends that a project provides."""
    return list(project.get("entry-points", {}).get("attentest.backends", {}))


def versions(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the installed versions of the requirements of the extra `library`."""
    required = (Requirement(one).name for one in project["optional-dependencies"]["library"])
    return {name: version(name) for name in required}


def verdicts(events: list[Json], names: list[str]) -> dict[str, Json]:
    """Return the results of the backends `names`: each status, and the details of notable cases.

    Raises ValueError for a stream that is incomplete.
    """
    if not events or events[-1]["type"] != "footer":
        raise ValueError("The stream has no footer: it is incomplete.")
    backends: dict[str, Json] = {}
    for event in events:
        if event["type"] == "backend" and event["backend"] in names and not event["failure"]:
            fields = ("title", "components", "choices", "limits")
            backends[event["backend"]] = {name: event[name] for name in fields} | {
                "statuses": {},
                "notable": [],
            }
        if event["type"] == "case" and event["backend"] in backends:
            _add(backends[event["backend"]], event)
    return {name: backends[name] for name in names if name in backends}


def _add(backend: Json, case: Json) -> None:
    backend["statuses"][case["clause"]] = case["status"]
    if Status(case["status"]) not in (Status.PASS, Status.ABSENT):
        fields = ("clause", "status", "message", "witness", "diagnosis")
        details = {name: case[name] for name in fields}
        backend["notable"].append({**details, "message": without_paths(case["message"])})


def without_paths(text: str) -> str:
    """Return `text` without the paths in which libraries are installed on this machine."""
    return re.sub(r"/[^\s;()]*/site-packages/", "", text)


def check(path: Path, backends: Mapping[str, Json]) -> None:
    """Fail if a clause has another status than the one stored in `path`."""
    stored = json.loads(path.read_text(encoding="utf-8"))["backends"] if path.exists() else {}
    for name, backend in backends.items():
        before = stored.get(name, {"statuses": {}})["statuses"]
        changed = [
            f"{clause} was {before.get(clause, 'not stored')} and is {status}"
            for clause, status in backend["statuses"].items()
            if before.get(clause) != status
        ]
        if changed:
            sys.exit(
                f"The verdicts on {name} differ from {path.name} of its folder: "
                f"{'; '.join(changed)}. Examine each by hand, then store them with "
                f"ATTENTEST_LEARNED=--write tox -e {path.parent.name}."
            )


if __name__ == "__main__":
    main()
