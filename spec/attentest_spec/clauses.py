"""The clauses, read from the chapters: Markdown is their one source.

A clause is a level-three heading with its slug, a paragraph with its text, and a list of fields::

    ### attention.rows-sum-to-one

    The weights of every query MUST sum to 1.

    - component: attention
    - depth: behaviour
    - kind: values
    - reason: what goes wrong otherwise
    - source: section 3.2.1
    - since: 0.1

Optional fields are `choice` (the choice this clause alone may call a deviation), `needs`
(capabilities of the contract, separated by commas) and `reach` (`anything`: it is judged on
every component that a backend provides).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from attentest_spec.choices import CHOICES
from attentest_spec.components import CHAPTERS, COMPONENTS
from attentest_spec.contract import CAPABILITIES

DEPTHS = ("behaviour", "numbers", "model")
"""The three depths: a callable alone, with a parameter map, as a whole model."""

KINDS = ("values", "robustness", "errors")
"""The kinds of clauses, the gravest first.

`values`: the numbers that are computed, by their definition or a law that they obey. `robustness`:
what has to hold around them, such as shapes, state, copies, modes, unchanged inputs, and finite
results at extremes and in half precision. `errors`: what is refused, and how.
"""

_HEADING = re.compile(r"^### (?P<slug>.+?)\s*$", re.MULTILINE)
_SLUG = re.compile(r"[a-z_]+\.[a-z0-9-]+")
_FIELD = re.compile(r"^- (?P<name>[a-z]+): (?P<value>.+(?:\n  .+)*)", re.MULTILINE)
_REQUIRED = ("component", "depth", "kind", "reason", "source", "since")
_OPTIONAL = ("choice", "needs", "reach")
_REACHES = ("anything",)


@dataclass(frozen=True)
class Clause:
    """One normative sentence of the spec.

    `level` is MUST or SHOULD, the strongest word in `text`: of a MUST, the part that says SHOULD
    gives a warning. `kind` is one of :data:`KINDS`; `choice` is the choice this clause judges or
    ""; `needs` are the capabilities without which it cannot be judged; `anywhere` says that it is
    judged on every component that a backend provides.
    """

    slug: str
    text: str
    level: str
    component: str
    depth: str
    kind: str
    reason: str
    source: str
    since: str
    choice: str = ""
    needs: tuple[str, ...] = ()
    anywhere: bool = False

    @property
    def chapter(self) -> str:
        """The chapter that the slug begins with."""
        return self.slug.partition(".")[0]


@cache
def clauses() -> Mapping[str, Clause]:
    """Return every clause by its slug, in the order of the chapters."""
    found: dict[str, Clause] = {}
    for chapter in CHAPTERS:
        for clause in parse(chapter_text(chapter), chapter):
            if clause.slug in found:
                raise ValueError(f"The clause {clause.slug} is written twice.")
            found[clause.slug] = clause
    return found


def chapter_text(chapter: str) -> str:
    """Return the Markdown of `chapter`."""
    return files("attentest_spec").joinpath(f"{chapter}.md").read_text(encoding="utf-8")


def parse(text: str, chapter: str) -> list[Clause]:
    """Read the clauses of one chapter; raise ValueError where one is not well formed."""
    heads = list(_HEADING.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return [
        _clause(head["slug"], text[head.end() : end], chapter)
        for head, end in zip(heads, ends, strict=True)
    ]


def _clause(slug: str, body: str, chapter: str) -> Clause:
    first = _FIELD.search(body)
    sentence = _fold(body[: first.start()] if first else body)
    names = [match["name"] for match in _FIELD.finditer(body)]
    fields = {match["name"]: _fold(match["value"]) for match in _FIELD.finditer(body)}
    problems = [f"no field {name}" for name in _REQUIRED if name not in fields]
    problems += [f"field {name} twice" for name in fields if names.count(name) > 1]
    problems += [f"unknown field {name}" for name in fields if name not in _REQUIRED + _OPTIONAL]
    problems += _values(fields)
    if not re.search(r"\b(MUST|SHOULD)\b", sentence):
        problems.append("no MUST or SHOULD in its text")
    if not _SLUG.fullmatch(slug):
        problems.append("its heading is no slug, chapter.words-in-small-letters")
    if slug.partition(".")[0] != chapter:
        problems.append(f"its slug does not begin with its chapter, {chapter}")
    if problems:
        raise ValueError(f"The clause {slug} is not well formed: {'; '.join(problems)}.")
    return Clause(
        slug=slug,
        text=sentence,
        level="MUST" if re.search(r"\bMUST\b", sentence) else "SHOULD",
        component=fields["component"],
        depth=fields["depth"],
        kind=fields["kind"],
        reason=fields["reason"],
        source=fields["source"],
        since=fields["since"],
        choice=fields.get("choice", ""),
        needs=_list(fields.get("needs", "")),
        anywhere="reach" in fields,
    )


def _values(fields: Mapping[str, str]) -> list[str]:
    known = {
        "component": COMPONENTS,
        "depth": DEPTHS,
        "kind": KINDS,
        "choice": CHOICES,
        "reach": _REACHES,
    }
    wrong = [
        f"{name} {fields[name]} is not known"
        for name, values in known.items()
        if name in fields and fields[name] not in values
    ]
    needs = _list(fields.get("needs", ""))
    return wrong + [f"need {need} is not known" for need in needs if need not in CAPABILITIES]


def _list(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


def _fold(text: str) -> str:
    return " ".join(text.split())
