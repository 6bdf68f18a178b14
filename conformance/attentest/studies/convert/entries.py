"""The entries of a checkpoint as a backend reads them: its state, its canonical parameters."""

from collections.abc import Mapping

from attentest.harness.errors import NotConvertible
from attentest.studies.convert.built import Built
from attentest.studies.convert.phrases import listed, phrases
from attentest_spec import Backend, Sizes
from attentest_spec.precision import PRECISIONS
from attentest_spec.setting import Array

Arrays = Mapping[str, Array]


def precision_of(entries: Arrays) -> str:
    """Return the one precision of the numbers in `entries`; NotConvertible for several or none."""
    kinds = sorted({one.dtype.name for one in entries.values()} & set(PRECISIONS))
    if len(kinds) != 1:
        raise NotConvertible(
            f"The entries of a checkpoint are converted in one precision, and these are of "
            f"{listed(kinds) or 'none'}. Cast them to one of {', '.join(PRECISIONS)} first."
        )
    return kinds[0]


def same(one: Array, other: Array) -> bool:
    """Say whether two arrays of one shape are equal bit by bit, in precision too."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def completed(entries: Arrays, source: Built) -> tuple[dict[str, Array], list[str]]:
    """Return the state of `source` that `entries` make, and in what they are not that state.

    An array that the source has under several names may stand in the file under one of them. What
    is missing or of another shape is left as the source was built.
    """
    own = source.state()
    twins = {id(array): entries[name] for name, array in own.items() if name in entries}
    found = {name: entries.get(name, twins.get(id(array))) for name, array in own.items()}
    known = {name: array for name, array in found.items() if array is not None}
    fitting = {name: array for name, array in known.items() if array.shape == own[name].shape}
    unlike = [
        f"{name} {known[name].shape}, not {array.shape}"
        for name, array in own.items()
        if name in known.keys() - fitting
    ]
    wrong = phrases(
        ("entries are missing", [name for name in own if name not in known]),
        (f"entries are not of {source.name}", sorted(entries.keys() - own)),
        ("entries have another shape", unlike),
    )
    return {**own, **fitting}, wrong


def canonical(
    state: Arrays, source: Backend, whole: str, sizes: Sizes, precision: str
) -> tuple[dict[str, Array], list[str]]:
    """Return the canonical parameters of the state, and which entries they do not determine.

    A fresh model that loads them has to have every entry again, bit by bit.
    """
    full, fresh = (Built(source, whole, sizes, precision) for _ in range(2))
    full.restore(state)
    parameters = full.export()
    fresh.load(parameters)
    again = fresh.state()
    other = [name for name, array in state.items() if not same(array, again[name])]
    text = (
        f"entries hold what no canonical parameter carries (a fixed table that {full.name} builds "
        f"with other numbers, unlike numbers for what is one array)"
    )
    return parameters, phrases((text, other))
