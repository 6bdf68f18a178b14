"""The terminal's view of what changed between two runs."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from attentest.results.changes import Change, Changes
from attentest.results.text import line

_FOLDED = ("removed", "added")
"""Kinds that come by the dozen and are told in one line."""


def show(console: Console, found: Changes) -> None:
    """Print what changed, backend by backend, and how many regressions there are."""
    for one in lines(found):
        style = "bold red" if one.endswith("(regression)") else ""
        console.print(Text(one, style=style), soft_wrap=True)


def lines(found: Changes) -> Iterator[str]:
    """Yield what changed, a line each."""
    yield f"from {found.old} to {found.new}"
    if found.settings:
        told = ", ".join(f"{name} {before} -> {now}" for name, before, now in found.settings)
        yield f"made under other settings: {told}"
    for name in dict.fromkeys([*found.unchanged, *(one.backend for one in found.changes)]):
        yield ""
        yield from _of_backend(name, found)
    yield ""
    number = len(found.regressions)
    yield {0: "no regression", 1: "1 regression"}.get(number, f"{number} regressions")


def _of_backend(name: str, found: Changes) -> Iterator[str]:
    own = [one for one in found.changes if one.backend == name]
    same = f"{found.unchanged[name]} unchanged" if name in found.unchanged else "in one run alone"
    yield f"{name}: {len(own)} changed, {same}"
    if name in found.failures:
        yield f"  not loaded: {line(found.failures[name], 500)}"
    for one in own:
        if one.kind not in _FOLDED:
            yield from _told(one)
    for kind in _FOLDED:
        clauses = [one.clause for one in own if one.kind == kind]
        if clauses:
            yield f"  {kind}: {len(clauses)} ({', '.join(clauses)})"


def _told(one: Change) -> Iterator[str]:
    worse = " (regression)" if one.regression else ""
    yield f"  {one.kind}: {one.clause}: {one.before} -> {one.now or 'no verdict'}{worse}"
    if one.message:
        yield f"    {line(one.message, 300)}"
