"""Writes a page of pictures for every chapter: its commonest mistakes, right and wrong."""

from html import escape
from pathlib import Path

from mistakes import SHOWN
from panels import difference, drawn
from views import Pair, View, compared

from attentest.faults import fault_of, faults
from attentest_spec.clauses import clauses
from attentest_spec.setting import Array


def write(out: Path) -> None:
    """Write the page of every chapter into `out`.

    Raises UnknownName for a mistake that the catalogue has no more, ValueError for one that does
    not show.
    """
    out.mkdir(parents=True, exist_ok=True)
    for chapter in SHOWN:
        (out / f"{chapter}.md").write_text(page(chapter), encoding="utf-8")


def page(chapter: str) -> str:
    """Return the page of one chapter."""
    shown = SHOWN[chapter]
    known = sum(one.chapter == chapter for one in faults().values())
    parts = [
        f"# {chapter}: the commonest mistakes",
        f"{len(shown)} of the {known} catalogued mistakes of [this chapter](../chapters/{chapter}"
        ".md), those met in published code first. Each picture is computed when this page is "
        "built: the right one by the spec's oracle, the wrong one by a sound implementation with "
        "the mistake planted into it, from the same inputs and parameters. `attentest list "
        "faults` names all of them.",
        *(section(slug, view) for slug, view in shown.items()),
    ]
    return "\n\n".join(parts) + "\n"


def section(slug: str, view: View) -> str:
    """Return what is wrong, what a user sees, the picture, and where to read on."""
    fault = fault_of(slug)
    pair = compared(slug, view)
    met = "" if fault.origin == "own" else " It was met in published code."
    return f"""(mistake-{slug})=
## {fault.wrong.rstrip(".")}

{fault.effect}{met}

{view.about}

```{{raw}} html
{_figures(slug, view, pair)}
<p class="reading">{escape(view.kind.reading)}</p>
```

Caught by {{ref}}`{fault.clause} <{fault.clause}>`: {clauses()[fault.clause].text}
More: `attentest explain {slug}`."""


def _figures(slug: str, view: View, pair: Pair) -> str:
    sides = {"right": pair.right, "wrong": pair.wrong}
    figures = [
        _figure(side, _told(view, pair, values), drawn(view, pair, values, f"{slug} {side}"))
        for side, values in sides.items()
    ]
    if view.kind.difference:
        told = f"up to {abs(pair.wrong - pair.right).max():.2f}"
        figures += [_figure("difference", told, difference(view, pair, f"{slug} difference"))]
    return f'<div class="mistake">{"".join(figures)}</div>'


def _told(view: View, pair: Pair, values: Array) -> str:
    """Return what a reader sees of one side, for those who do not see it."""
    return f"{view.columns} across, {view.rows} down; {view.kind.told(pair, values)}"


def _figure(side: str, told: str, svg: str) -> str:
    label = escape(f"{side}: {told}")
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f'<figure class="{side}"><figcaption>{side}</figcaption>{labelled}</figure>'
