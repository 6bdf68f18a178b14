"""Descriptions from the specification, for `attentest list` and `attentest explain`."""

from collections.abc import Callable, Iterator
from textwrap import fill

from attentest_spec import (
    CHOICES,
    COMPONENTS,
    Choice,
    Choices,
    Clause,
    Component,
    UnknownName,
    registry,
)
from attentest_spec.choices import Value
from attentest_spec.clauses import KINDS, clauses
from attentest_spec.parameters import shapes
from attentest_spec.profiles import PROFILES, Profile
from attentest_spec.registry import LoadFailure, NotInstalled
from attentest_spec.sizes import Sizes

WIDTH = 88

Rows = Iterator[tuple[str, str]]


def listed() -> dict[str, Callable[[], Rows]]:
    """Return, for each kind that can be listed, a function that yields names and descriptions."""
    return {
        "backends": _backends,
        "clauses": _clauses,
        "choices": lambda: ((one.name, one.question) for one in CHOICES.values()),
        "faults": _faults,
        "profiles": lambda: ((one.name, one.title) for one in PROFILES.values()),
        "components": lambda: (
            (one.name, f"({', '.join(one.inputs)})") for one in COMPONENTS.values()
        ),
    }


def _clauses() -> Rows:
    longest = max(map(len, KINDS))
    for one in clauses().values():
        yield one.slug, f"{one.level:<6}  {one.kind:<{longest}}  {one.text}"


def _backends() -> Rows:
    for name in registry.names():
        try:
            yield name, registry.load(name).title
        except NotInstalled:
            yield name, f"not installed; {registry.install_command(name)}"
        except LoadFailure as failure:
            yield name, f"NOT LOADED: {failure}"


def _faults() -> Rows:
    from attentest.faults import faults

    return ((slug, fault.wrong) for slug, fault in faults().items())


def _fault(slug: str) -> str:
    from attentest.faults import fault_of

    fault = fault_of(slug)
    about = [
        f"component  {', '.join(fault.changes)}",
        f"clause     {fault.clause}",
        f"kind       {fault.kind}",
        f"origin     {fault.origin}",
    ]
    return "\n".join(
        [slug, "", fill(fault.wrong, WIDTH), "", fill(fault.effect, WIDTH), "", *about]
    )


def described(name: str) -> str:
    """Return the explanation of the clause, choice, component, profile or backend called `name`.

    Raises UnknownName with the nearest names where nothing is called so.
    """
    if name in clauses():
        return _clause(clauses()[name])
    if name in CHOICES:
        return _choice(CHOICES[name])
    if name in COMPONENTS:
        return _component(COMPONENTS[name])
    if name in registry.names():
        return _backend(name)
    if name in PROFILES:
        return _profile(PROFILES[name])
    faults = [slug for slug, _ in _faults()]
    if name in faults:
        return _fault(name)
    known = [*clauses(), *CHOICES, *COMPONENTS, *registry.names(), *PROFILES, *faults]
    raise UnknownName("clause, choice, component, backend, profile or fault", name, known)


def _clause(clause: Clause) -> str:
    about = [
        f"level      {clause.level}",
        f"component  {clause.component}",
        f"depth      {clause.depth}",
        f"kind       {clause.kind}",
        f"source     {clause.source}",
        f"since      {clause.since}",
    ]
    if clause.choice:
        about.append(f"choice     {clause.choice} (this clause alone may call it a deviation)")
    if clause.needs:
        about.append(f"needs      {', '.join(clause.needs)}")
    return "\n".join(
        [
            clause.slug,
            "",
            fill(clause.text, WIDTH),
            "",
            fill(clause.reason, WIDTH),
            "",
            *about,
            "",
            f"The chapter is attentest_spec/{clause.chapter}.md.",
        ]
    )


def _choice(choice: Choice) -> str:
    rows = [
        f"  {option.name}{' (the paper)' if option.name == choice.paper else ''}: {option.meaning}"
        for option in choice.options
    ]
    if choice.number:
        rows.append(f"  {choice.number}")
    silent = (
        []
        if choice.paper
        else ["", f"The paper does not specify it; judged by {choice.first} if undeclared."]
    )
    return "\n".join(
        [
            choice.name,
            "",
            choice.question,
            *rows,
            *silent,
            "",
            fill(choice.why, WIDTH),
            "",
            f"source  {choice.source}",
            f"clause  {choice.clause}",
        ]
    )


def _profile(profile: Profile) -> str:
    longest = max(map(len, profile.choices), default=0)
    rows = [
        f"  {name:<{longest}}  {_shown(value)} (the paper: {_of_paper(CHOICES[name])})"
        for name, value in profile.choices.items()
    ]
    return "\n".join(
        [
            profile.name,
            "",
            fill(profile.title, WIDTH),
            "",
            f"{len(rows)} choices of its own:",
            *rows,
            "",
            f"source  {profile.source}",
        ]
    )


def _of_paper(choice: Choice) -> str:
    return choice.paper or "not specified"


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else value


def _component(component: Component) -> str:
    table = shapes(component.name, Sizes(layers=1), Choices(projection_bias="present"))
    about = [slug for slug, clause in clauses().items() if clause.component == component.name]
    lines = [component.name, "", f"call     ({', '.join(component.inputs)})"]
    if component.methods:
        lines.append(f"methods  {', '.join(component.methods)}")
    if component.contains:
        lines.append(f"contains {', '.join(component.contains)}")
    if table:
        sizes = "d_model 6, heads 2, d_ff 10, one layer, vocabularies 11 and 13"
        lines += ["", f"canonical parameters (shapes at {sizes}):"]
        lines += [f"  {name}  {shape}" for name, shape in table.items()]
    return "\n".join([*lines, "", f"{len(about)} clauses:", *(f"  {slug}" for slug in about)])


def _backend(name: str) -> str:
    try:
        backend = registry.load(name)
    except LoadFailure as failure:
        return f"{name}\n\n{fill(str(failure), WIDTH)}"
    choices = [f"  {axis}: {value}" for axis, value in backend.choices.items()]
    limits = [f"  {limit}: {value}" for limit, value in vars(backend.limits).items()]
    return "\n".join(
        [
            name,
            "",
            fill(backend.title, WIDTH),
            "",
            "components:",
            fill(", ".join(backend.components), WIDTH, initial_indent="  ", subsequent_indent="  "),
            "",
            "declared choices:",
            *choices,
            "",
            "limits:",
            *limits,
        ]
    )
