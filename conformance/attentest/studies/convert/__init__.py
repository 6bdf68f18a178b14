"""Carries weights across: the checkpoint of one backend becomes that of another.

:func:`converted` works on what :func:`read` returns and :func:`write` takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from attentest.analysis.undeclared import effective_choices
from attentest.harness.errors import BadCheckpoint, NotConvertible
from attentest.studies.convert.built import shapes_of
from attentest.studies.convert.carry import carry
from attentest.studies.convert.checkpoint import Checkpoint, read, write
from attentest.studies.convert.effect import Difference, Effect, effect
from attentest.studies.convert.phrases import listed
from attentest.studies.convert.sizes import Probed, shown
from attentest.studies.convert.wholes import MODEL, whole_of
from attentest_spec import CHOICES, Backend, Choices, Sizes
from attentest_spec.names import require

SIZES = tuple(one.name for one in fields(Sizes) if one.name != "dropout")
"""The sizes that can be given; dropout changes no weight."""

_NEEDED = ("layers", "d_model", "heads", "d_ff", "target_vocabulary")


@dataclass(frozen=True)
class Conversion:
    """A checkpoint of the target, and what there is to know of it.

    `lost` says what was not carried exactly, and is empty where everything was; `notes` say what
    was added or left out without an effect; `effect` says how far the outputs of the two models
    lie apart on drawn sentences.
    """

    checkpoint: Checkpoint
    lost: tuple[str, ...]
    notes: tuple[str, ...]
    effect: Effect


def converted(
    checkpoint: Checkpoint,
    source: Backend,
    target: Backend,
    *,
    sizes: Mapping[str, int] | None = None,
    approximate: bool = False,
) -> Conversion:
    """Return `checkpoint` of `source` as one of `target`.

    `sizes` are taken as given; the others are read off the entries, then off the file. Raises
    NotConvertible where not everything can be carried exactly; with `approximate` only where
    nothing can.
    """
    whole = whole_of(source, target)
    known = _known(checkpoint, source, target, whole, sizes or {})
    full = Sizes(**known)
    carried = carry(checkpoint.entries, source, target, whole, full)
    lost = (*_contradicted(checkpoint, source), *carried.lost)
    if lost and not approximate:
        raise NotConvertible(
            f"The checkpoint of {source.name} cannot be carried over to {target.name} exactly: "
            f"{'; '.join(lost)}. With --approximate what has a place is carried."
        )
    differences = effect(source, carried.state, target, carried.entries, whole, full)
    choices = effective_choices(target).as_dict()
    made = Checkpoint(carried.entries, known, choices, checkpoint.notes)
    return Conversion(made, lost, carried.notes, differences)


def _known(
    checkpoint: Checkpoint, source: Backend, target: Backend, whole: str, given: Mapping[str, int]
) -> dict[str, int]:
    """Return the sizes as far as they are known; NotConvertible where one is needed that is not."""
    for name in given:
        require("size", name, SIZES)
    told = {name: value for name, value in checkpoint.sizes.items() if name in SIZES}
    known = {**told, **shown(shapes_of(checkpoint.entries), Probed(source, whole), given)}
    for name, value in known.items():
        if value < (0 if name.endswith("_pad") or name == "kv_heads" else 1):
            raise NotConvertible(f"The size {name} cannot be {value}.")
    read = ("source_vocabulary",) * (whole == MODEL)
    read += ("max_length",) * Probed(target, whole).depends("max_length")
    needed = [*_NEEDED, *read]
    unknown = [name for name in needed if name not in known]
    if unknown:
        example = ",".join(f"{name}=8" for name in unknown)
        raise NotConvertible(
            f"The entries do not show everything that has to be known of the model: "
            f"{listed(unknown)}. Give it, as in --sizes {example}."
        )
    return known


def _contradicted(checkpoint: Checkpoint, source: Backend) -> list[str]:
    """Say where the file states other choices than its backend declares."""
    declared = Choices.of(source.choices)
    return [
        f"the file says that the choice {name} is {value}, and {source.name} declares "
        f"{declared[name]}"
        for name, value in checkpoint.choices.items()
        if name in CHOICES and name in source.choices and value != declared[name]
    ]


__all__ = [
    "SIZES",
    "BadCheckpoint",
    "Checkpoint",
    "Conversion",
    "Difference",
    "Effect",
    "NotConvertible",
    "converted",
    "read",
    "write",
]
