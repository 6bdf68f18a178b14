"""Writes the page that compares all installed backends: choices, numbers, pictures.

Its content is computed when the pages are built, by the functions of `attentest compare`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
from kinds import MASK, SHARES, TABLE
from panels import draw
from tables import table
from views import Kind, Pair, View

from attentest.analysis.identify.finding import format_value
from attentest.studies.comparison import EXAMPLES, EXPLAINED, BadExample, Comparison
from attentest.studies.comparison.compare import side_by_side
from attentest.studies.comparison.participant import methods
from attentest.studies.comparison.parts import BOUND, ChoiceRow, Explanation
from attentest.studies.comparison.pictures import ATTENTION, POSITIONS, Picture
from attentest.studies.comparison.pictures import MASK as MASKS
from attentest.studies.comparison.words import departure, in_short, pair
from attentest.studies.participants import Local
from attentest_spec import Backend, registry

SHOWN: Mapping[str, tuple[Kind, str, str]] = {
    MASKS: (MASK, "query", "key"),
    ATTENTION: (SHARES, "query", "key"),
    POSITIONS: (TABLE, "position", "column"),
}
"""The kind of picture, and the names of its axes."""


def write(out: Path) -> None:
    """Write `comparison.md` into `out`."""
    backends = {name: registry.load(name) for name in registry.installed()}
    (out / "comparison.md").write_text(page(backends), encoding="utf-8")


def page(backends: Mapping[str, Backend]) -> str:
    """Return the page: whole models together, each part of a model with the first model."""
    whole = [name for name, one in backends.items() if "model" in one.components]
    known = {name: _measured_once(one) for name, one in backends.items()}
    result = _compare({name: known[name] for name in whole or backends})
    first = next(iter(result.backends), "none")
    parts = [
        "# The implementations compared",
        "Computed when this page is built, for all installed backends, with the same canonical "
        "weights and the same tokens. "
        "[How to read it, and how to compare your own code](../how-to/compare.md).",
        "## Choices",
        "The declared and measured options, and those of "
        "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762) in the column `paper`.",
        _choices(result),
        *_reasons(result),
        "## Numbers",
        f"The difference from {first} at every step of a model, in float64. A dash means that "
        "the shapes differ or that a backend does not report the step.",
        _steps(result),
        *result.notes,
        "## Explanations",
        "With these choices changed in the reference, no difference remains. Each list is minimal.",
        *_explanations(result),
        *_of_parts(first, known, [name for name in backends if whole and name not in whole]),
        *_pictures(result),
    ]
    return "\n\n".join(parts) + "\n"


def _measured_once(backend: Backend) -> Local:
    """Return `backend` as a participant whose choices are measured once, in all comparisons."""
    answers = methods(backend)
    return Local({**answers, "account": cache(answers["account"])})


def _compare(participants: Mapping[str, Local]) -> Comparison:
    return side_by_side(participants, EXAMPLES["small"])


def _choices(found: Comparison) -> str:
    def row(one: ChoiceRow) -> Iterator[str]:
        name = f"{{ref}}`{one.choice} <choice-{one.choice}>`"
        yield f"**{name}**" if one.differs else name
        yield "(unspecified)" if one.paper is None else f"`{format_value(one.paper)}`"
        yield from ("-" if value is None else f"`{format_value(value)}`" for value in one.values)

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
        f"- {{ref}}`{flip.choice} <choice-{flip.choice}>`: `{format_value(flip.first)}` becomes "
        f"`{format_value(flip.other)}`"
        for flip in one.options
    ]
    where = f"{departure(one.parting)}; {one.left:.0e} remains with these choices changed:"
    return "\n".join([f"**{pair(one)}**: {where}", "", *flips])


def _of_parts(first: str, known: Mapping[str, Local], names: Sequence[str]) -> Iterator[str]:
    """Yield the comparison of each backend in `names`, which has no whole model, with `first`."""
    if names:
        yield "## Parts of a model"
    for name in names:
        try:
            result = _compare({first: known[first], name: known[name]})
        except BadExample as none:
            yield f"**{name}**: {none}"
            continue
        if result.explanations:
            compared = ", ".join(result.components)
            yield f"{name} does not provide a model; it is compared by {compared}."
            yield _choices(result)
        yield from _explanations(result)


# Pictures ----------------------------------------------------------------------------------------


def _pictures(found: Comparison) -> Iterator[str]:
    yield "## Pictures"
    yield (
        "For one source and one target sequence, with `pad` after their ends. The attention "
        "weights are those of the first layer. Backends with equal results share a picture."
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


def _figure(equal: Sequence[Picture]) -> str:
    """Return one picture, with the names of all backends for which it is equal."""
    one, names = equal[0], escape(", ".join(picture.backend for picture in equal))
    kind, rows, columns = SHOWN[one.kind]
    values = np.array(one.values, dtype=float)
    values = values.astype(bool) if one.kind == MASKS else values
    both = Pair(values, values)
    named = columns if one.kind == POSITIONS else f"{columns}: {' '.join(one.columns)}"
    view = View(component="", look=_nothing, kind=kind, rows=rows, columns=named)
    label = f"{escape(one.title)} of {names}: {escape(named)} across, {rows} down"
    svg = draw(view, both, values, f"{one.backend} {one.title}")
    labelled = svg.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)
    return f"<figure><figcaption>{names}</figcaption>{labelled}</figure>"


def _nothing(ask: object) -> np.ndarray:
    raise NotImplementedError("the picture is already computed")
