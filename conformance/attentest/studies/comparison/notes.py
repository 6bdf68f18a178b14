"""Notes on the numbers: parameters that could not be equal, and steps that were not observed."""

from collections.abc import Mapping, Sequence

from attentest.studies.comparison.account import Account
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.recording import OUTWARD, Place, Recording, apart
from attentest.studies.comparison.weights import compared
from attentest_spec.parameters import shapes


def cuts(done: Recording, right: Recording, example: Example, room: float) -> Recording:
    """Return the steps of a backend that are the contract's, given what the oracle does.

    What is apart by no more than `room` counts as the same.
    Where the result is right and a module inside gives something else, the module is another piece
    of the whole than the part whose parameters it has, such as a sublayer that adds the residual.
    """
    wrong = [place for place in done if _wrong(place, done, right, example, room)]
    if any(place.part in OUTWARD for place in wrong):
        return dict(done)
    return {place: event for place, event in done.items() if place not in wrong}


def _wrong(place: Place, done: Recording, right: Recording, example: Example, room: float) -> bool:
    if place not in right:
        return False
    difference = apart(right[place], done[place], place, example)
    return difference is not None and difference > room


def notes(
    accounts: Mapping[str, Account],
    done: Mapping[str, Recording],
    kept: Mapping[str, Recording],
    components: Sequence[str],
    example: Example,
) -> tuple[str, ...]:
    """Return the notes, a sentence each."""
    return (
        *(f"{one}." for one in example.notes),
        *_of_weights(accounts, components, example),
        *(
            f"{name} shows no steps inside: it is compared by its outputs alone."
            for name, recording in done.items()
            if all(place.part in OUTWARD for place in recording)
        ),
        *(
            f"In {name}, {_listed([str(place) for place in done[name] if place not in one])} is "
            f"another piece of the whole than in the contract; it is left out."
            for name, one in kept.items()
            if len(one) < len(done[name])
        ),
    )


def _of_weights(
    accounts: Mapping[str, Account], components: Sequence[str], example: Example
) -> list[str]:
    """Return which weights cannot be the same in all."""
    tables = {
        name: {
            f"{component}: {parameter}": shape
            for component in components
            for parameter, shape in shapes(component, example.sizes, one.choices).items()
        }
        for name, one in accounts.items()
    }
    every, differing, missing = compared(tables)
    told = []
    if differing:
        told.append(
            f"{len(differing)} of {len(every)} weights have different shapes "
            f"({_kinds(differing)}): "
            f"each has its own there, and is compared with the reference on them."
        )
    for name, lacking in missing.items():
        zero = any(_bare(one, lacking) for one in lacking)
        told.append(
            f"{name} has no place for {len(lacking)} of {len(every)} weights "
            f"({_kinds(lacking)})" + ("; a missing bias counts as zero." if zero else ".")
        )
    return told


def _bare(name: str, lacking: Sequence[str]) -> bool:
    """Say whether `name` is a bias that is left out while its weight is not."""
    part, _, leaf = name.rpartition(".")
    return leaf == "bias" and not {f"{part}.weight", f"{part}.gain"} & set(lacking)


def _kinds(names: Sequence[str]) -> str:
    """Return `names` without the stack and the number of the layer, each once."""
    short = (name.split(": ")[1] for name in names)
    return _listed(list(dict.fromkeys(_short(name) for name in short)))


def _short(name: str) -> str:
    words = [word for word in name.split(".") if not word.isdigit()]
    return ".".join(words[2:] if len(words) > 3 else words)


def _listed(names: Sequence[str], most: int = 4) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
