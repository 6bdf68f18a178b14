"""Draws the matrix of a run: a row for each chapter, a column for each implementation."""

from collections.abc import Sequence
from html import escape

from palette import HIDDEN, INK, KEEP, NEGATIVE, PAPER

from attentest.results.run import Run, score
from attentest.views.matrix import label

LEFT, WIDTH, HEIGHT, BORDER, LEGEND = 150, 78, 26, 10, 30


def picture(run: Run) -> str:
    """Return the SVG file of the matrix."""
    names = [label(one, run.targets) for one in run.targets]
    chapters = list(dict.fromkeys(str(one["chapter"]) for one in run.clauses.values()))
    rows = [(chapter, _counts(run, chapter)) for chapter in chapters]
    rows.append(("conforms", [one.score for one in run]))
    across = LEFT + WIDTH * len(names) + 2 * BORDER
    down = HEIGHT * (len(rows) + 1) + LEGEND + 2 * BORDER
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{across}" height="{down}" '
        f'viewBox="0 0 {across} {down}" font-family="sans-serif" font-size="14" fill="{INK}">',
        f'<rect width="{across}" height="{down}" rx="6" fill="{PAPER}"/>',
        *(_text(_x(number) + WIDTH / 2, _y(-1), name) for number, name in enumerate(names)),
    ]
    for number, (chapter, counts) in enumerate(rows):
        parts.append(_text(LEFT, _y(number), chapter.replace("_", " "), "end"))
        parts += [_cell(_x(place), _y(number), *count) for place, count in enumerate(counts)]
    legend = (("all hold", KEEP), ("some do not", NEGATIVE), ("not provided", HIDDEN))
    for number, (words, colour) in enumerate(legend):
        x, y = LEFT + BORDER + 130 * number, _y(len(rows)) + 4
        parts.append(f'<rect x="{x}" y="{y - 6}" width="12" height="12" fill="{colour}"/>')
        parts.append(_text(x + 18, y, words, "start"))
    return "\n".join([*parts, "</svg>\n"])


def words(run: Run) -> str:
    """Return the scores of the matrix in words."""
    scores = ", ".join(f"{one.target} {one.score[0]}/{one.score[1]}" for one in run)
    return f"Matrix of chapters by implementations. Clauses that hold, of those judged: {scores}."


def _counts(run: Run, chapter: str) -> Sequence[tuple[int, int]]:
    slugs = {slug for slug, one in run.clauses.items() if one["chapter"] == chapter}
    return [score(v for v in one.verdicts if v.clause in slugs) for one in run]


def _x(column: int) -> int:
    return LEFT + BORDER + WIDTH * column


def _y(row: int) -> float:
    """Return the middle of a row; the headings are row -1."""
    return BORDER + HEIGHT * (row + 1.5)


def _cell(x: float, y: float, good: int, judged: int) -> str:
    colour = HIDDEN if not judged else KEEP if good == judged else NEGATIVE
    box = (
        f'<rect x="{x + 1}" y="{y - HEIGHT / 2 + 1}" width="{WIDTH - 2}" height="{HEIGHT - 2}" '
        f'rx="3" fill="{colour}"/>'
    )
    return box + _text(x + WIDTH / 2, y, f"{good}/{judged}" if judged else "-")


def _text(x: float, y: float, words: str, anchor: str = "middle") -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" dominant-baseline="central">'
        f"{escape(words)}</text>"
    )
