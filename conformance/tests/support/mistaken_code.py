"""Code of a test, written into a file and read as that of a user; and mistakes in it."""

from pathlib import Path

import pytest

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend


def adapted(folder: Path, name: str, source: str, **reading: object) -> Backend:
    """Return the backend of `name` in a file with `source`; raise Unclear where it asks."""
    file = folder / "own.py"
    file.write_text(source)
    return attentest.adapted(f"{file}:{name}", **reading)


def edited(source: str, *edits: tuple[str, str]) -> str:
    """Return `source` with each of the `edits`, of which the first part has to be there."""
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return source


def asked(target: object, component: str = "", **reading: object) -> str:
    """Return the question about `target`, which is one short paragraph."""
    with pytest.raises(Unclear) as failure:
        attentest.adapted(target, component, **reading)  # type: ignore[arg-type]
    text = str(failure.value)
    assert "\n" not in text
    assert len(text) < 1000
    return text


def broken(backend: Backend, *clauses: str) -> list[str]:
    """Return the messages of the `clauses` that are broken; the first of them has to be judged."""
    bench = Bench.for_status(backend, effort=0.2)
    verdicts = [judge(bench, one) for one in clauses]
    assert verdicts[0].status.judged
    return [one.message for one in verdicts if one.status in (Status.VIOLATION, Status.ERROR)]


def asked_or_broken(
    folder: Path, name: str, source: str, right: str, wrong: str, *clauses: str
) -> bool:
    """Say whether `source` with `wrong` for `right` is asked about, or breaks one of `clauses`."""
    mistaken = source.replace(right, wrong)
    assert mistaken != source
    try:
        backend = adapted(folder, name, mistaken)
    except Unclear:
        return True
    return bool(broken(backend, *clauses))
