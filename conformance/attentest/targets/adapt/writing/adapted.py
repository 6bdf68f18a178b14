"""Adapters as one call of `attentest.adapted`, for what is read by trying it out."""

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from attentest.targets.layout import folded
from attentest.targets.models.written import head_line
from attentest.targets.origin import Origin


def loader(place: Origin, options: Mapping[str, Any]) -> str:
    """Return code that adapts what is at `place` again, and calls it `backend`."""
    given = [f"    {key}={value!r}," for key, value in options.items() if value]
    call = ["backend = attentest.adapted(", f"    {place.expression},", *given, ")"]
    return "\n".join([*place.imports, "import attentest", "", *map(folded, call)])


def adapted_file(
    name: str, place: Origin, options: Mapping[str, Any], understood: Iterable[str]
) -> str:
    """Return the adapter as the text of a Python file, with what was inferred as its options."""
    comments = [f"# {line}" for one in understood for line in wrap(one, 86)]
    return "\n".join([head_line(name), "", *comments, "", loader(place, options), ""])
