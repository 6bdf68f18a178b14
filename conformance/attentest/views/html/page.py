"""The page of a report: one file, rendered from templates, a style sheet and a script."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from attentest.analysis.identify.finding import format_value
from attentest.results.changes import KINDS
from attentest.results.files import Unreadable
from attentest.results.optional import needed
from attentest.results.text import line
from attentest.results.verdict import Status
from attentest.results.wording import PAPER
from attentest.studies.comparison.parts import BOUND
from attentest.version import __version__
from attentest.views.html import choices, findings, grid
from attentest.views.html.grids import indexed, swept
from attentest.views.html.heatmap import Picture, picture
from attentest.views.html.material import Material
from attentest.views.html.plotted import Plotted, costs, learned, numbers
from attentest.views.matrix import label

if TYPE_CHECKING:
    from jinja2 import Environment

BEGINNING = "<!doctype html><!-- attentest report -->"
"""The first characters of a report, so that no other file is overwritten."""


def page(material: Material) -> str:
    """Return the page that shows `material`, as HTML.

    The same material gives the same page. Raises Missing where a library of the extra `report` is
    not installed, and Unreadable for a result file that does not hold what its kind should.
    """
    template = _environment().get_template("page.html")
    undefined = needed("jinja2").UndefinedError
    try:
        return f"{BEGINNING}\n{template.render(_context(material))}\n"
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, undefined) as wrong:
        names = [one["name"] for one in _results(material)]
        if not names:
            raise
        raise Unreadable(
            f"{', '.join(names)} cannot be shown: what its kind should hold is missing or another "
            f"({line(repr(wrong))}). Make it again with this version."
        ) from wrong


def _results(material: Material) -> Iterator[Mapping[str, Any]]:
    yield from material.comparisons
    yield from material.costs
    yield from material.learnings
    yield from material.sweeps
    yield from material.indices


def _context(material: Material) -> dict[str, Any]:
    material = material.focused
    columns = grid.columns(material)
    style, script = _asset("page.css"), _asset("page.js")
    rows = choices.rows(material, columns)
    clauses = grid.described(material.runs)
    found = findings.findings(columns)
    choosers = choices.backends(material, columns)
    return {
        "policy": _policy(style, script),
        "style": style,
        "script": script,
        "material": material,
        "columns": columns,
        "clauses": clauses,
        "chapters": grid.chapters(clauses),
        "present": {status for one in columns for status in one.counts},
        "findings": found,
        "answer": findings.answered(columns, found) if columns else None,
        "cards": findings.by_gravity(columns),
        "paper": PAPER,
        "statuses": list(Status),
        "words": grid.WORDS,
        "counted": grid.COUNTED,
        "kinds": KINDS,
        "data": {**grid.data(material), "causes": findings.searched(columns)},
        "choices": rows,
        "choosers": [line(label(name, choosers), 40) for name in choosers],
        "bound": BOUND,
        "version": __version__,
        "sources": _sources(material),
        "plots": _plots(material),
        "backends": bool(material.comparisons or material.costs or material.learnings),
        "pictures": _pictures(material),
    }


def _plots(material: Material) -> dict[str, list[Plotted]]:
    """Return the sections of cost and of learning that are not empty, by their titles."""
    found = {
        "Cost": [costs(one, number) for number, one in enumerate(material.costs)],
        "Learning": [learned(one, number) for number, one in enumerate(material.learnings)],
        "Sweeps": [swept(one, number) for number, one in enumerate(material.sweeps)],
        "Mistakes": [indexed(one, number) for number, one in enumerate(material.indices)],
    }
    return {title: several for title, several in found.items() if several}


def _sources(material: Material) -> list[str]:
    """Return the names of the files that the page was made of."""
    return [*(one.name for one in material.runs), *(one["name"] for one in _results(material))]


def _pictures(material: Material) -> dict[str, list[Picture]]:
    """Return the pictures of all comparisons by backend."""
    entries = (one for found in material.comparisons for one in found.get("pictures", ()))
    pictures = [picture(one) for one in entries]
    names = dict.fromkeys(one.backend for one in pictures)
    return {name: [one for one in pictures if one.backend == name] for name in names}


def _policy(style: str, script: str) -> str:
    """Return the policy that lets in this style and this script, and nothing from elsewhere."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asset(name: str) -> str:
    return files("attentest.views.html").joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> "Environment":
    jinja2 = needed("jinja2")
    made: Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("attentest.views.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "value": format_value,
        "line": line,
        "number": _number,
        "numbers": numbers,
        "partings": _partings,
    }
    return made


def _partings(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the step at which each backend of a comparison first differs from the first one."""
    return {
        one["other"]: one["parting"]["step"]
        for one in found["explanations"]
        if one["first"] == found["backends"][0]
    }


def _number(value: float | None) -> str:
    """Return a difference or a weight as short as it can be read, "-" for none."""
    return "-" if value is None else f"{value:.3g}"
