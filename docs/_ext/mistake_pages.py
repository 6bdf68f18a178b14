"""Writes a page of pictures for every chapter: common mistakes, correct and wrong."""

from html import escape
from pathlib import Path

from mistakes import SHOWN
from panels import difference, draw
from views import Pair, View, compare

from attentest.faults import fault_of, faults
from attentest_spec.clauses import clauses
from attentest_spec.setting import Array


def write(out: Path) -> None:
    """Write the page of every chapter into `out`.

    Raises UnknownName for a mistake that is not in the catalogue, ValueError for one that is not
    visible in its picture.
    """
    out.mkdir(parents=True, exist_ok=True)
    for chapter in SHOWN:
        (out / f"{chapter}.md").write_text(page(chapter), encoding="utf-8")


def page(chapter: str) -> str:
    """Return the page of one chapter."""
    shown = SHOWN[chapter]
    known = sum(one.chapter == chapter for one in faults().values())
    parts = [
        f"# {chapter}: common mistakes",
        f"{len(shown)} of the {known} faults of [this chapter](../chapters/{chapter}.md), first "
        "those that were found in published code. Each picture is computed when this page is "
        "built: the correct one by the reference of the spec, the wrong one by a correct "
        "implementation into which the fault is injected, with the same inputs and parameters. "
        "`attentest list faults` prints all faults.",
        *(section(slug, view) for slug, view in shown.items()),
    ]
    return "\n\n".join(parts) + "\n"


def section(slug: str, view: View) -> str:
    """Return the mistake, its effect, the picture, and links."""
    fault = fault_of(slug)
    pair = compare(slug, view)
    origin = "" if fault.origin == "own" else " It was found in published code."
    return f"""(mistake-{slug})=
## {fault.wrong.rstrip(".")}

{fault.effect}{origin}

{view.about}

```{{raw}} html
{_figures(slug, view, pair)}
<p class="reading">{escape(view.kind.reading)}</p>
```

Detected by {{ref}}`{fault.clause} <{fault.clause}>`: {clauses()[fault.clause].text}
More: `attentest explain {slug}`."""


def _figures(slug: str, view: View, pair: Pair) -> str:
    sides = {"correct": pair.right, "wrong": pair.wrong}
    figures = [
        _figure(side, _description(view, pair, values), draw(view, pair, values, f"{slug} {side}"))
        for side, values in sides.items()
    ]
    if view.kind.difference:
        largest = f"up to {abs(pair.wrong - pair.right).max():.2f}"
        figures += [_figure("difference", largest, difference(view, pair, f"{slug} difference"))]
    return f'<div class="mistake">{"".join(figures)}</div>'


def _description(view: View, pair: Pair, values: Array) -> str:
    """Return the text alternative of one side."""
    return f"{view.columns} across, {view.rows} down; {view.kind.describe(pair, values)}"


def _figure(side: str, description: str, svg: str) -> str:
    label = escape(f"{side}: {description}")
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f'<figure class="{side}"><figcaption>{side}</figcaption>{labelled}</figure>'
