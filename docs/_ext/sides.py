"""Writes the page that sets all installed backends side by side: choices, numbers, pictures.

Everything on it is computed when the pages are built, by what `attentest compare` does.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
from kinds import MASK, SHARES, TABLE
from panels import drawn
from tables import table
from views import Kind, Pair, View

from attentest.studies.comparison import EXAMPLES, EXPLAINED, BadExample, Comparison
from attentest.studies.comparison.compare import side_by_side
from attentest.studies.comparison.participant import local
from attentest.studies.comparison.parts import BOUND, ChoiceRow, Explanation
from attentest.studies.comparison.pictures import ATTENTION, POSITIONS, Picture
from attentest.studies.comparison.pictures import MASK as MASKS
from attentest.studies.comparison.words import departure, in_short, pair
from attentest.views.identification import told
from attentest_spec import Backend, registry

SHOWN: Mapping[str, tuple[Kind, str, str]] = {
    MASKS: (MASK, "query", "key"),
    ATTENTION: (SHARES, "query", "key"),
    POSITIONS: (TABLE, "position", "column"),
}
"""How a kind of picture is drawn, and what its axes are."""


def write(out: Path) -> None:
    """Write `side-by-side.md` into `out`."""
    backends = {name: registry.load(name) for name in registry.installed()}
    (out / "side-by-side.md").write_text(page(backends), encoding="utf-8")


def page(backends: Mapping[str, Backend]) -> str:
    """Return the page: whole models all at once, parts of one each beside the first model."""
    whole = {name: one for name, one in backends.items() if "model" in one.components}
    found = _compared(whole or backends)
    first = next(iter(found.backends), "none")
    parts = [
        "# The implementations side by side",
        "Computed when this page is built, from every backend that is installed there, with the "
        "same canonical weights and the same tokens for all. "
        "[How to read it, and how to make it of your own code](../how-to/compare.md).",
        "## Choices",
        _choices(found),
        *_reasons(found),
        "## Numbers",
        f"How far each is from {first} at every step of a model, in float64; a dash stands where "
        "the shapes are unlike or a backend does not show the step.",
        _steps(found),
        *found.notes,
        "## What explains them",
        "Flipping these choices in the oracle takes each difference away, and none of them can be "
        "left out.",
        *_explanations(found),
        *_of_parts(first, backends, [name for name in backends if whole and name not in whole]),
        *_pictures(found),
    ]
    return "\n\n".join(parts) + "\n"


def _compared(backends: Mapping[str, Backend]) -> Comparison:
    return side_by_side({name: local(one) for name, one in backends.items()}, EXAMPLES["small"])


def _choices(found: Comparison) -> str:
    def row(one: ChoiceRow) -> Iterator[str]:
        name = f"{{ref}}`{one.choice} <choice-{one.choice}>`"
        yield f"**{name}**" if one.differs else name
        yield "(silent)" if one.paper is None else f"`{told(one.paper)}`"
        yield from ("-" if value is None else f"`{told(value)}`" for value in one.values)

    return table(["choice", "paper", *found.backends], (tuple(row(one)) for one in found.choices))


def _reasons(found: Comparison) -> Iterator[str]:
    differing = [one for one in found.choices if one.differs]
    yield "Bold rows differ:" if differing else "They make the same choices."
    yield "\n".join(
        f"- {{ref}}`{one.choice} <choice-{one.choice}>`: {one.why} "
        f"({{ref}}`{one.clause} <{one.clause}>`)"
        for one in differing
    )


def _steps(found: Comparison) -> str:
    def cell(difference: float | None) -> str:
        if difference is None:
            return "-"
        return "equal" if difference <= BOUND else f"{difference:.2g}"

    rows = (
        (f"`{row.step}`", *map(cell, row.outputs))
        for row in found.steps
        if any(one is not None for one in row.outputs)
    )
    return table(["step", *found.backends[1:]], rows)


def _explanations(found: Comparison) -> Iterator[str]:
    yield from map(_explained, found.explanations)
    for one in found.failures:
        yield f"**{one.backend}** was not compared: {one.reason}."


def _explained(one: Explanation) -> str:
    if one.status != EXPLAINED:
        return f"**{pair(one)}**{in_short(one).removeprefix(pair(one))}"
    flips = [
        f"- {{ref}}`{flip.choice} <choice-{flip.choice}>`: `{told(flip.first)}` becomes "
        f"`{told(flip.other)}`"
        for flip in one.options
    ]
    where = f"{departure(one.parting)}; {one.left:.0e} is left with these flipped:"
    return "\n".join([f"**{pair(one)}**: {where}", "", *flips])


def _of_parts(first: str, backends: Mapping[str, Backend], names: Sequence[str]) -> Iterator[str]:
    """Yield what is to say of those that are no whole model, each beside the `first` one."""
    if names:
        yield "## Parts of a model"
    for name in names:
        try:
            beside = _compared({first: backends[first], name: backends[name]})
        except BadExample as none:
            yield f"**{name}**: {none}"
            continue
        if beside.explanations:
            yield f"{name} provides no model; compared are {', '.join(beside.components)}."
            yield _choices(beside)
        yield from _explanations(beside)


# Pictures ----------------------------------------------------------------------------------------


def _pictures(found: Comparison) -> Iterator[str]:
    yield "## Pictures"
    yield (
        "One sentence a side, `pad` where it has ended; the weights are those of the first layer. "
        "Those that compute the same share a picture."
    )
    for title in dict.fromkeys(one.title for one in found.pictures):
        same: dict[object, list[Picture]] = {}
        for one in found.pictures:
            if one.title == title:
                same.setdefault((one.values, one.rows, one.columns), []).append(one)
        figures = "".join(map(_figure, same.values()))
        reading = escape(SHOWN[next(iter(same.values()))[0].kind][0].reading)
        yield f"### {title[0].upper()}{title[1:]}"
        yield f'```{{raw}} html\n<div class="mistake">{figures}</div>\n```'
        yield f'```{{raw}} html\n<p class="reading">{reading.partition(" Framed")[0]}</p>\n```'


def _figure(alike: Sequence[Picture]) -> str:
    """Return one picture, with the names of all for which it is the same."""
    one, names = alike[0], escape(", ".join(picture.backend for picture in alike))
    kind, rows, columns = SHOWN[one.kind]
    values = np.array(one.values, dtype=float)
    values = values.astype(bool) if one.kind == MASKS else values
    both = Pair(values, values)
    named = columns if one.kind == POSITIONS else f"{columns}: {' '.join(one.columns)}"
    view = View(component="", look=_nothing, kind=kind, rows=rows, columns=named)
    label = f"{escape(one.title)} of {names}: {escape(named)} across, {rows} down"
    svg = drawn(view, both, values, f"{one.backend} {one.title}")
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f"<figure><figcaption>{names}</figcaption>{labelled}</figure>"


def _nothing(ask: object) -> np.ndarray:
    raise NotImplementedError("a picture that is there already is not asked for")
