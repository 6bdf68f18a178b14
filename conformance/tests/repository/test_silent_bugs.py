"""The stored silent-bug index: the sentence in README, and what other seeds change."""

from folders import DOCS, REPOSITORY

from attentest.results import files
from attentest.studies.index.evidence import Evidence
from attentest.studies.index.result import Index

MOVES = 0.03
"""The largest share of the mistakes by which other seeds may change a class."""


def stored(name: str) -> Index:
    return Index.from_dict(files.read(DOCS / "records" / f"{name}.json", "index"))


def test_readme_states_what_the_stored_index_counts() -> None:
    found = stored("silent-bugs")
    counts, total = found.counts, len(found.entries)
    assert total >= 200
    assert len(found.seeds) >= 3
    silent = counts[Evidence.NOTHING] + counts[Evidence.UNCHANGED]
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    assert (
        f"Of {total} injected mistakes the curve of the training loss shows "
        f"{counts[Evidence.TRAINING]} ({counts[Evidence.TRAINING] / total:.0%}), and "
        f"{counts[Evidence.STOPS]} stop the training; nothing that a training prints shows "
        f"{silent} ({silent / total:.0%})."
    ) in readme


def test_other_seeds_move_no_class_by_more_than_three_points() -> None:
    first, second = stored("silent-bugs"), stored("silent-bugs-other-seeds")
    assert not set(first.seeds) & set(second.seeds)
    assert [one.slug for one in first.entries] == [one.slug for one in second.entries]
    moved = {kind: abs(first.counts[kind] - second.counts[kind]) for kind in Evidence}
    assert max(moved.values()) <= MOVES * len(first.entries)
