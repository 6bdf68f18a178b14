"""Fields of a configuration that hold fields themselves: `config.transformer["num_heads"]`."""

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import PAIRS
from attentest.targets.adapt.objects.configuration import Fields, fields_read

F = TypeVar("F")

_LIBRARIES = ("builtins", "torch", "typing", "abc")
_MOST = 4
"""The largest number of such fields."""


def fields_and_groups(
    build: Callable[[Any], Any],
    fill: Callable[[str, Mapping[str, F]], F | None],
    value: Callable[[F], Any],
    grouped: Callable[[Fields[F]], F],
    is_stored: Callable[[str], bool],
) -> Fields[F]:
    """Return the fields that `build` reads, where groups of fields that are said are fields too.

    `grouped` returns the filling of one. Without a group whose fields are all said, the fields are
    those that `fields_read` returns. Of a field that what is built only keeps, nothing is said,
    where `is_stored` says that no code reads it then.
    """
    plain = fields = fields_read(build, fill, value)
    groups: dict[str, Fields[F]] = {}
    while fields.lacking and fields.lacking not in groups and len(groups) < _MOST:
        own = partial(_of_group, fill, fields.lacking)
        groups[fields.lacking] = Fields(own, value)
        fields = fields_read(build, fill, value, groups)
    read = [one for name, one in groups.items() if not (one.is_kept and is_stored(name))]
    if fields.missing or not groups or not all(one.found and not one.missing for one in read):
        return plain
    fields.found |= {name: grouped(one) for name, one in groups.items()}
    return fields


def _of_group(fill: Callable[[str, Mapping[str, F]], F | None], group: str, name: str) -> F | None:
    """Return the filling of the field `name` of a `group`: of patches, that is one of images."""
    joined = f"{group}_{name}"
    own = fill(joined, {}) if squashed(joined) in PAIRS else None
    return fill(name, {}) if own is None else own


def only_stored(thing: Any, name: str) -> bool:
    """Say whether the file of `thing` reads the field `name` to store it, and reads it no more.

    The classes of other files that it inherits from are read, too.
    """
    home = sys.modules.get(getattr(thing, "__module__", ""))
    try:
        read = [inspect.getsource(one) for one in (home, *_bases(thing))]  # type: ignore[arg-type]  # of None it raises
        nodes = [node for one in read for node in ast.walk(ast.parse(one))]
    except (OSError, SyntaxError, TypeError):
        return False
    stores = {
        id(one.value): one.targets[0]
        for one in nodes
        if isinstance(one, ast.Assign) and len(one.targets) == 1
    }
    held = [one for one in nodes if _is_read(one, name) and not _is_own(one)]
    kept = [stores.get(id(one)) for one in held]
    own = {one.attr for one in kept if isinstance(one, ast.Attribute) and _is_own(one)}
    loads = (one for one in nodes if isinstance(one, ast.Attribute) and _is_own(one))
    used = {one.attr for one in loads if isinstance(one.ctx, ast.Load)}
    return bool(held) and len(own) > 0 and all(map(_is_own, kept)) and not own & used


def _bases(thing: Any) -> list[type]:
    """Return the classes of other files that `thing` inherits from, besides those of libraries."""
    every = thing.__mro__ if inspect.isclass(thing) else ()
    libraries = (*_LIBRARIES, thing.__module__) if every else ()
    return [
        one
        for one in every
        if one.__module__.partition(".")[0] not in libraries and one.__module__ not in libraries
    ]


def _is_read(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Load)
    key = node.slice if isinstance(node, ast.Subscript) else None
    return getattr(key, "value", None) == name


def _is_own(node: ast.AST | None) -> bool:
    """Say whether a node is an attribute of self."""
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
