"""Question about parameters of a whole model that were not assigned within the time."""

from collections import Counter

from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.parameters.telling import FAILED
from attentest.targets.adapt.reading import Reading, Unclear
from attentest_spec.mapping import Table


def demand_assignment(found: FoundTable, explained: bool, reading: Reading, name: str) -> None:
    """Raise Unclear where not every assignment was tried, and no choice gives the numbers.

    Where all were tried the numbers are those of a mistake, whatever the order; where calls fail,
    none can be. Rows of one matrix
    and members of a list have a usual order; attributes with names of their own have none.
    """
    is_untried = any(FAILED in one for one in found.remarks)
    is_open = (found.cut or is_untried) and found.doubts and not explained
    if reading.anyway or not is_open or _in_order(found.table):
        return
    why = "none was tried" if is_untried else "the time was up before all assignments were tried"
    raise Unclear(
        f"{name} was read as an encoder-decoder model. Names do not say which of its parameters is "
        f"which, and {why}: {'; '.join(found.doubts)}{'' if is_untried else ' so far'}. Say "
        f"which one is which with --parameter NAME=PATH (in Python: parameters), or judge it with "
        f"--anyway, in the usual order."
    )


def _in_order(table: Table) -> bool:
    """Say whether the projections of every attention are in one matrix or list, all but one."""
    alone = Counter(
        name.rpartition(".")[0]
        for name, entry in table.items()
        if name.endswith(_ORDERED) and isinstance(entry, str) and not _is_member(entry)
    )
    return all(count < 2 for count in alone.values())


def _is_member(path: str) -> bool:
    """Say whether `path` ends in the number of a member of a list."""
    return path.rpartition(".")[2].isdigit()


_ORDERED = (".query", ".key", ".value")
