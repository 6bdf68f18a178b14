"""Options of code: another value of an argument may give the formula, where the default does not.

A norm may be one over all positions with `mode="graph"`, as its documentation says, and a layer
norm with `mode="node"`. Which one is meant is asked.
"""

import ast
import inspect
import re
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import Filling
from attentest.targets.adapt.names import OF_CHOICES, ON
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.words import feed_forward_role
from attentest.targets.adapt.probing import QUERIES
from attentest.targets.adapt.reading import Offered, Reading, Unclear
from attentest_spec import Table
from attentest_spec.components import inside

SECONDS = 6.0
"""Time limit for trying other values."""

Explained = Callable[[Reading], bool]
"""Says whether code, read with other settings, computes its component."""


def demand_default(code: Code, reading: Reading, explained: Explained, table: Table) -> None:
    """Raise Offered with the value that is meant, where one other value alone gives the formula.

    So is the gate of a feed-forward network that the names in `table` say otherwise.
    """
    if asked := _gate_question(code, reading, explained, table) or _value(code, reading, explained):
        raise Offered(asked)


def _value(code: Code, reading: Reading, explained: Explained) -> str:
    clock, found = Clock(SECONDS), []
    for name, default, value in _alternatives(code, reading):
        if clock.rings():
            break
        if explained(replace(reading, given={**reading.given, name: value})):
            found.append((name, default, value))
    same = all(one[:2] == (found[0][0], None) for one in found)  # None selects no formula
    if not found or (len(found) > 1 and not same):
        return ""
    name, default, value = found[0]
    if callable(default):
        return (
            f"With {name}=None, {code.name} computes {code.component}; with its default "
            f"{name}={getattr(default, '__name__', default)} it does not. If that is meant, the "
            f"spec does not cover it; --give {name}=None (in Python: given={{{name!r}: None}}) "
            f"judges it without."
        )
    return (
        f"With {name}={value!r}, {code.name} computes {code.component}; with its default "
        f"{name}={default!r} it does not. Say which is meant: --give {name}={value} or --give "
        f"{name}={default} (in Python: given={{{name!r}: {value!r}}})."
    )


def demand_lengths_left_out(
    code: Code, reading: Reading, keys: int, place: Callable[..., tuple[Any, Any, int]]
) -> None:
    """Raise Offered with the length to leave out, where other `keys` than queries are refused.

    `place` calls code in a layout, and returns last the number of keys that it takes: as many as
    queries where it is built with a length that is None by default, and others without.
    """
    whole = code.construction
    if whole is None or keys != QUERIES:
        return
    for name, length in _optional_lengths(code):
        rest = {own: one for own, one in whole.fillings.items() if own != name}
        built = replace(whole, fillings=rest)
        try:
            *_, free = place(replace(code, construction=built, build=built), only=reading.layout)
        except Unclear:
            continue
        if free != keys:
            raise Offered(
                f"{code.name} built with {name}={length.words} takes no more keys than queries, "
                f"and as by default, with {name}=None, it does. Say which is meant: --give "
                f"{name}=None (in Python: given={{{name!r}: None}}) judges it without."
            )


def _gate_question(code: Code, reading: Reading, explained: Explained, table: Table) -> str:
    """Ask which matrix is the gate, where the one whose name says so is multiplied by it; or ""."""
    gate, inner = table.get("gate"), table.get("inner")
    if reading.parameters or not (isinstance(gate, str) and isinstance(inner, str)):
        return ""
    if not feed_forward_role(gate) or feed_forward_role(inner):  # both say it, or neither does
        return ""
    if not explained(replace(reading, parameters={"gate": inner, "inner": gate})):
        return ""
    return (
        f"By its name {gate} is the gate of {code.name}, and {inner} has the activation: with "
        f"{inner} as the gate it computes {code.component}. If that is meant: --parameter "
        f"gate={inner} --parameter inner={gate} (in Python: parameters={{'gate': {inner!r}, "
        f"'inner': {gate!r}}})."
    )


def _alternatives(code: Code, reading: Reading) -> Iterator[tuple[str, Any, Any]]:
    """Yield the name, the default and another value of each option, words before switches.

    What selects among formulas of the spec is no such option.
    """
    options = {
        name: one
        for name, one in _arguments(code).items()
        if name not in reading.given and squashed(name) not in {*OF_CHOICES, *ON}
    }
    sources = _sources(code)
    for name, one in options.items():
        if isinstance(one.default, str) or one.default is None:
            for value in _values(name, one, sources, code.words):
                if value != one.default:
                    yield name, one.default, value
    for name, one in options.items():
        if isinstance(one.default, bool):
            yield name, one.default, not one.default
    for name, one in _arguments(code).items():
        chosen = squashed(name) in OF_CHOICES and "feed_forward" in inside(code.component)
        if chosen or name in reading.given or isinstance(one.default, type):
            continue
        if callable(one.default):
            yield name, one.default, None


def _optional_lengths(code: Code) -> Iterator[tuple[str, Filling]]:
    """Yield the arguments that are None by default and get a length, with that.

    They may be for a mask of later positions, or a table of positions.
    """
    built = code.construction
    if built is None:
        return
    defaults = inspect.signature(built.make).parameters
    for name, one in built.fillings.items():
        if one.settles == {"max_length"} and name in defaults and defaults[name].default is None:
            yield name, one


def _arguments(code: Code) -> dict[str, inspect.Parameter]:
    """Return the arguments of the constructor and of the call."""
    made = code.construction.make if code.construction else None
    built = inspect.signature(made).parameters if made else {}
    return {**code.signature.parameters, **built}


def _sources(code: Code) -> list[ast.AST]:
    """Return the source of a function, or of a class and those of the same package above it."""
    things = [code.thing]
    if inspect.isclass(code.thing):
        home = code.thing.__module__.partition(".")[0]
        things = [one for one in code.thing.__mro__ if one.__module__.partition(".")[0] == home]
    trees: list[ast.AST] = []
    for thing in things:
        try:
            trees.append(ast.parse(textwrap.dedent(inspect.getsource(thing))))
        except (OSError, TypeError, SyntaxError):
            continue
    return trees


def _values(name: str, one: inspect.Parameter, trees: list[ast.AST], words: str) -> list[str]:
    """Return the words that the option `name` can be, as annotation, source or documentation say.

    The order is that of the places, without repetition.
    """
    annotated = [value for value in typing.get_args(one.annotation) if isinstance(value, str)]
    compared = [value for tree in trees for value in _compared(name, tree)]
    return list(dict.fromkeys([*annotated, *compared, *_documented(name, words)]))


def _compared(name: str, tree: ast.AST) -> Iterator[str]:
    """Yield the words that source compares the option `name` with, or looks it up among."""
    names = {name}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=ast.Name(id=own)) if own == name:
                names |= {one.attr for one in targets if isinstance(one, ast.Attribute)}
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                if any(_is_named(one, names) for one in (left, *others)):
                    yield from _words((left, *others))
            case ast.Match(subject=subject, cases=cases) if _is_named(subject, names):
                yield from _words([one.pattern for one in cases])
            case ast.Subscript(value=ast.Dict(keys=keys), slice=key) if _is_named(key, names):
                yield from _words([one for one in keys if one is not None])


def _is_named(node: ast.AST, names: set[str]) -> bool:
    own = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return own in names


def _words(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield one.value


def _documented(name: str, words: str) -> list[str]:
    """Return the quoted words in the paragraph of a docstring that begins with `name`."""
    begin = re.search(rf"^(?P<indent>[ \t]*){name}\b.*$", words, flags=re.MULTILINE)
    if begin is None:
        return []
    lines = [begin.group()]
    for line in words[begin.end() :].splitlines()[1:]:
        inside = len(line) - len(line.lstrip()) > len(begin["indent"])
        if not inside or not line.strip():
            break
        lines.append(line)
    return re.findall(r"[\"']([\w-]+)[\"']", "\n".join(lines))


def demand_known_arguments(code: Code, reading: Reading) -> None:
    """Refuse what is settled for an argument that is not there."""
    own = {*code.signature.parameters, *code.constants}
    if code.construction is not None:
        own |= code.construction.arguments
    for name in [*reading.given, *reading.arguments.values()]:
        if name not in own:
            known = ", ".join(sorted(own)) or "none"
            raise Unclear(f"{code.name} has no argument {name!r}; it has {known}.")
