"""The terminal's view of the silent-bug index: what shows the mistakes, by component and task."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from attentest.studies.index.evidence import Evidence
from attentest.studies.index.result import Index
from attentest.views.tables import Row, tables
from attentest.views.terminal import say

LEGEND = (
    "Counted by the first that holds on any of the tasks: the training stops with an error or a "
    "number that is not finite; the training loss, the held-out loss or the accuracy of greedy "
    "decoding leaves the range of the seeds; nothing does; or all numbers are the same to the bit."
)
CAVEAT = (
    "These are models of one layer and a width of 32, trained for 100 steps without dropout. A "
    "mistake that begins at a size, a length or a step beyond these changes no number here, and a "
    "longer training may show what these do not."
)


def show(console: Console, found: Index) -> None:
    """Print what shows the mistakes: a table by component, one by task, and the sum in words."""
    for table in tables("component", found.headings[1:], _rows(found.rows()), console.width):
        console.print(table)
    console.print()
    by_task = [
        (task, str(len(found.entries)), *(str(counts[kind]) for kind in Evidence))
        for task, counts in found.by_task().items()
    ]
    for table in tables("task", found.headings[1:], _rows(by_task), console.width):
        console.print(table)
    plain = found.as_dict()
    say(console, "", LEGEND, "", sentence(plain), "", extent(plain), CAVEAT)


def sentence(found: Mapping[str, object]) -> str:
    """Return the sum of an index, as plain values (`Index.as_dict()`), in words."""
    counts = found["counts"]
    assert isinstance(counts, dict)
    of = {kind: int(counts[str(kind)]) for kind in Evidence}
    total = sum(of.values())
    silent = of[Evidence.NOTHING] + of[Evidence.UNCHANGED]
    return (
        f"Of {total} injected mistakes the curve of the training loss shows "
        f"{of[Evidence.TRAINING]} ({of[Evidence.TRAINING] / total:.0%}), and "
        f"{of[Evidence.STOPS]} stop the training. Of the others the held-out loss shows "
        f"{of[Evidence.VALIDATION]} and the accuracy of greedy decoding "
        f"{of[Evidence.ACCURACY]}. Nothing shows {silent} ({silent / total:.0%}); "
        f"{of[Evidence.UNCHANGED]} of them change no number of a training."
    )


def extent(found: Mapping[str, object]) -> str:
    """Return how much of the catalogue an index, as plain values, can be about."""
    return (
        f"These trainings can contain {found['population']} mistakes of the catalogue; "
        f"{found['outside']} others are in no part of them, or in the text of an error alone."
    )


def _rows(rows: Sequence[Sequence[str]]) -> list[Row]:
    return [
        Row(name, [Text(one, justify="right") for one in cells], "bold" if name == "all" else "")
        for name, *cells in rows
    ]
