"""Says a table: as lines of Python to paste, and in sentences what is odd about it."""

from collections.abc import Iterable

from attentest_spec.mapping import Place, Table

LEFT_OVER = "Left over, and kept as initialised"


def lines(table: Table) -> tuple[str, ...]:
    """Return Python that makes `table`, under the name PARAMETERS."""
    entries = [f"    {_quoted(name)}: {_written(entry)}," for name, entry in table.items()]
    needed = any(isinstance(entry, Place) for entry in table.values())
    start = ["from attentest_spec import Place", ""] if needed else []
    return (*start, "PARAMETERS = {", *entries, "}")


def spoken(tables: Iterable[Table]) -> str:
    """Return tables in one line: which parameter is where."""
    return ", ".join(
        f"{name} = {entry if isinstance(entry, str) else _written(entry)}"
        for table in tables
        for name, entry in table.items()
    )


FAILED = "calling it failed with"
"""The words of a map that no numbers could choose, as a call raises."""
_UNEXPLAINED = "no assignment gives the spec's numbers; the usual order was assumed"
_EXPLAINED = "the usual order was taken, and gives the spec's numbers under the options measured"


def as_explained(remarks: Iterable[str]) -> tuple[str, ...]:
    """Return `remarks` on code whose numbers some options explain, though the first call did not.

    Positions inside attention are measured after the map of parameters.
    """
    return tuple(one.replace(_UNEXPLAINED, _EXPLAINED) for one in remarks)


def how_taken(fits: int, failure: str) -> str:
    """Return how a map was taken of several, of which `fits` give the numbers of a call."""
    if fits > 1:
        return f"{fits} maps give the same numbers and cannot be distinguished; the first was taken"
    if fits:
        return "names and shapes leave several maps, and the numbers chose"
    start, end = _UNEXPLAINED.split(";")
    return f"{start} ({FAILED} {failure});{end}" if failure else _UNEXPLAINED


def by_a_mistake(about: str, tables: Iterable[Table]) -> str:
    """Return how a map was taken that gives the numbers of a call under one known mistake."""
    return f"{about}: one known mistake gives the numbers under this map: {spoken(tables)}."


def packed(table: Table) -> list[str]:
    """Say which parameters hold several in one, and in which order."""
    orders: dict[str, dict[int, str]] = {}
    for name, entry in table.items():
        if isinstance(entry, Place) and entry.part and not name.endswith(".bias"):
            role = name.removesuffix(".weight").rpartition(".")[2]
            how = f", laid out as {entry.layout}" if entry.layout else ""
            orders.setdefault(f"{entry.name} is packed{how}", {})[entry.part[0]] = role
    return [
        f"{what}: {', then '.join(order[number] for number in sorted(order))}."
        for what, order in orders.items()
    ]


def untold(missing: list[str]) -> list[str]:
    """Say which canonical parameters nothing was found for."""
    if not missing:
        return []
    return [
        f"Nothing was found for {few(missing)}, which the spec has: "
        f"the clauses that load parameters will say so."
    ]


def left_over(rest: list[str]) -> list[str]:
    """Say which of the module's own parameters the table leaves out."""
    return [f"{LEFT_OVER}: {few(rest)}."] if rest else []


def norms_by_numbers(tables: Iterable[Table]) -> str:
    """Say that norms are mapped against their names."""
    return (
        f"The names of the norms say another order, and the numbers fit this one alone: "
        f"{spoken(tables)}; --parameter NAME=PATH corrects it."
    )


def against_names(slot: str, named: Table, shown: Table) -> str:
    """Say that a projection is used for another one."""
    other = {name: entry for name, entry in shown.items() if named.get(name) != entry}
    about = slot or "the attention"
    return (
        f"{about}: the numbers fit only against the names, with {spoken([other])}: it is judged "
        f"by the names; --parameter NAME=PATH corrects them."
    )


def few(names: Iterable[str], most: int = 6) -> str:
    """Return the first of `names`, and how many more there are."""
    listed = list(names)
    rest = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + rest


def _written(entry: str | Place) -> str:
    if isinstance(entry, str):
        return _quoted(entry)
    said = [_quoted(entry.name)]
    said += [f"part={entry.part}"] if entry.part else []
    said += ["transpose=True"] if entry.transpose else []
    said += [f"layout={_quoted(entry.layout)}"] if entry.layout else []
    said += [f"plus={entry.plus}"] if entry.plus else []
    said += [f'span="{entry.span}"'] if entry.span else []
    return f"Place({', '.join(said)})"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
