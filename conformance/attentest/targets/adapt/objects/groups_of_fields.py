"""Fields of a configuration that hold fields themselves: `config.transformer["num_heads"]`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from attentest.targets.adapt.objects.configuration import Fields, fields_read

F = TypeVar("F")

_MOST = 4
"""The largest number of such fields."""


def fields_and_groups(
    build: Callable[[Any], Any],
    fill: Callable[[str, Mapping[str, F]], F | None],
    value: Callable[[F], Any],
    grouped: Callable[[Fields[F]], F],
) -> Fields[F]:
    """Return the fields that `build` reads, where groups of fields that are said are fields too.

    `grouped` returns the filling of one. Without a group whose fields are all said, the fields are
    those that `fields_read` returns.
    """
    plain = fields = fields_read(build, fill, value)
    groups: dict[str, Fields[F]] = {}
    while fields.lacking and fields.lacking not in groups and len(groups) < _MOST:
        groups[fields.lacking] = Fields(lambda name: fill(name, {}), value)
        fields = fields_read(build, fill, value, groups)
    if fields.missing or not all(one.found and not one.missing for one in groups.values()):
        return plain
    fields.found |= {name: grouped(one) for name, one in groups.items()}
    return fields
