"""The terminal's view of what changed between two runs."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from attentest.results.changes import Change, Changes
from attentest.results.text import counted, line

_FOLDED = ("removed", "added")
"""Kinds that come by the dozen and are shown in one line."""


def show(console: Console, changes: Changes) -> None:
    """Print what changed, backend by backend, and how many regressions there are."""
    for text in lines(changes):
        console.print(text, soft_wrap=True)


def lines(changes: Changes) -> Iterator[Text]:
    """Yield what changed, a line each, regressions in red."""
    yield Text(f"from {changes.old} to {changes.new}")
    if changes.settings:
        settings = ", ".join(f"{name} {before} -> {now}" for name, before, now in changes.settings)
        yield Text(f"made under other settings: {settings}")
    for name in dict.fromkeys([*changes.unchanged, *(one.backend for one in changes.changes)]):
        yield Text("")
        yield from _of_backend(name, changes)
    yield Text("")
    number = len(changes.regressions)
    yield Text(counted(number, "regression") if number else "no regression")


def _of_backend(name: str, changes: Changes) -> Iterator[Text]:
    own = [one for one in changes.changes if one.backend == name]
    both = name in changes.unchanged
    same = f"{changes.unchanged[name]} unchanged" if both else "in one run alone"
    yield Text(f"{name}: {len(own)} changed, {same}")
    if name in changes.failures:
        yield Text(f"  not loaded: {line(changes.failures[name], 500)}")
    for one in own:
        if one.kind not in _FOLDED:
            yield from _change(one)
    for kind in _FOLDED:
        clauses = [one.clause for one in own if one.kind == kind]
        if clauses:
            yield Text(f"  {kind}: {len(clauses)} ({', '.join(clauses)})")


def _change(one: Change) -> Iterator[Text]:
    worse, style = (" (regression)", "bold red") if one.regression else ("", "")
    before, now = one.before, one.now or "no verdict"
    yield Text(f"  {one.kind}: {one.clause}: {before} -> {now}{worse}", style=style)
    if one.message:
        yield Text(f"    {line(one.message, 300)}")
