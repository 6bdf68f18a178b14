"""The parameter map of any number of layers, from that of two."""

import re
from collections.abc import Mapping
from dataclasses import replace

from attentest.targets.language_models.numbers.places import View
from attentest_spec import Place
from attentest_spec.mapping import Table

MOST_LAYERS = 64
"""The number of layers up to which places are written out where no pattern covers them."""

_LATER = (
    " (as where x = norm(x) comes before x = x + sublayer(x): the path around the sublayer begins "
    "behind the norm, which is a mistake if x + sublayer(norm(x)) is meant)"
)
"""Words on norms that are held by the next layer."""

_NUMBER = re.compile(r"(\d+)")
_FIRST, _SECOND = "layers.0.", "layers.1."


def table_of(views: Mapping[str, View]) -> dict[str, Place] | str:
    """Return the map of a model whose first two layers, or whose one, are mapped by `views`.

    A sentence on the first pair of names that no rule explains, where there is one.
    """
    table: dict[str, Place] = {}
    for name, view in views.items():
        if name.startswith(_SECOND):
            continue
        if not name.startswith(_FIRST):
            table[name] = view.place
            continue
        inner = name.removeprefix(_FIRST)
        if _SECOND + inner not in views:  # a model of one block
            table[name] = view.place
            continue
        found = _generalised(inner, view.place, views[_SECOND + inner].place)
        if isinstance(found, str):
            return found
        table |= found
    return table


def section_of(views: Mapping[str, View]) -> tuple[str, int, int] | None:
    """Return the list that holds the layers and what comes behind them, None for no such list.

    With its path come the numbers of its items before the layers, and in each of them.
    """
    inner = next((one.removeprefix(_FIRST) for one in views if one.startswith(_FIRST)), "")
    places = (views.get(f"{layer}{inner}") for layer in (_FIRST, _SECOND))
    one, other = (_NUMBER.split(view.place.name) if view else [] for view in places)
    moved = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    if len(moved) != 1 or not one[moved[0]].isdigit():
        return None
    path, start = "".join(one[: moved[0]]), int(one[moved[0]])
    step = int(other[moved[0]]) - start
    rest = (view.place.name for name, view in views.items() if not name.startswith("layers."))
    items = (one.removeprefix(path).partition(".")[0] for one in rest if one.startswith(path))
    behind = [one for one in items if one.isdigit() and int(one) >= start + 2 * step]
    return (path.removesuffix("."), start, step) if behind and step > 0 else None


def _generalised(inner: str, first: Place, second: Place) -> dict[str, Place] | str:
    """Return the places of the parameter `inner` of all layers."""
    wrong = f"{inner} is {first.name} in one layer and {second.name} in the next"
    if _NUMBER.findall(first.name)[:1] == ["1"] and inner.partition(".")[0].endswith("_norm"):
        wrong += _LATER
    if replace(first, name="") != replace(second, name=""):
        return wrong
    one, other = _NUMBER.split(first.name), _NUMBER.split(second.name)
    if len(one) != len(other):
        return wrong
    moved = [at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(moved) != 1 or not one[moved[0]].isdigit():
        return wrong
    at = moved[0]
    start, step = int(one[at]), int(other[at]) - int(one[at])
    if (start, step) == (0, 1) and "*" not in "".join(one[:at]):
        pattern = "".join([*one[:at], "*", *one[at + 1 :]])
        return {f"layers.*.{inner}": replace(first, name=pattern)}
    return {
        f"layers.{number}.{inner}": replace(
            first, name="".join([*one[:at], str(start + number * step), *one[at + 1 :]])
        )
        for number in range(MOST_LAYERS)
    }


def listed(table: Table) -> dict[str, str | Place]:
    """Return the entries of one layer, where layers are written out."""
    return {
        name: place
        for name, place in table.items()
        if not name.startswith("layers.") or name.startswith(("layers.*", "layers.0."))
    }
