"""Fields of a configuration that hold fields themselves: `config.transformer["num_heads"]`."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import PAIRS
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
    those that `fields_read` returns. Of a field that what is built only keeps, nothing is said.
    """
    plain = fields = fields_read(build, fill, value)
    groups: dict[str, Fields[F]] = {}
    while fields.lacking and fields.lacking not in groups and len(groups) < _MOST:
        own = partial(_of_group, fill, fields.lacking)
        groups[fields.lacking] = Fields(own, value)
        fields = fields_read(build, fill, value, groups)
    read = [one for one in groups.values() if not one.is_kept]
    if fields.missing or not read or not all(one.found and not one.missing for one in read):
        return plain
    fields.found |= {name: grouped(one) for name, one in groups.items()}
    return fields


def _of_group(fill: Callable[[str, Mapping[str, F]], F | None], group: str, name: str) -> F | None:
    """Return the filling of the field `name` of a `group`: of patches, that is one of images."""
    joined = f"{group}_{name}"
    own = fill(joined, {}) if squashed(joined) in PAIRS else None
    return fill(name, {}) if own is None else own
