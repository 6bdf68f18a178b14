"""The example that models are compared on: sizes and tokens."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from attentest.harness.errors import AttentestError
from attentest_spec import COMPONENTS, Limits, Sizes
from attentest_spec.contract import MASK_KINDS
from attentest_spec.names import UnknownName, require

Tokens = tuple[tuple[int, ...], ...]

SHAPED = ("layers", "heads", "max_length", "d_ff")
"""The sizes that a backend may limit."""

FORM = (
    'Give a file with {"source": [[5, 3, 0]], "target": [[1, 6]]}: sentences of one length on each '
    'side, as numbers from 0 on, and where others are wanted {"sizes": {"d_model": 8, ..}}.'
)


class BadExample(AttentestError, ValueError):
    """An example that is none; the text says why, and gives the form of one."""


@dataclass(frozen=True)
class Example:
    """Sizes, source tokens (B, S), target tokens (B, T), and the kinds of masks that may be used.

    `cross` says whether attention may be asked with keys that are not its queries. `precision` is
    the one that all are called in. `notes` say what had to be changed to fit it to those that are
    compared.
    """

    sizes: Sizes
    source: Tokens
    target: Tokens
    masks: tuple[str, ...] = MASK_KINDS
    cross: bool = True
    precision: str = "float64"
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Example":
        """Read an example back from plain values."""
        source, target = (tuple(map(tuple, plain[side])) for side in ("source", "target"))
        sizes = Sizes(**plain["sizes"])
        rest = {name: tuple(plain[name]) for name in ("masks", "notes")}
        return cls(
            sizes, source, target, cross=plain["cross"], precision=plain["precision"], **rest
        )

    def fitted(self, limits: Mapping[str, Limits]) -> "Example":
        """Return it inside the `limits` of all backends, given by their names, with notes.

        Raises :class:`BadExample` where no sizes suit them all.
        """
        fitted = self
        for name, one in limits.items():
            fitted = fitted._within(name, one)
        for name, one in limits.items():
            if one.fitted(fitted.sizes) != fitted.sizes:
                raise BadExample(
                    f"They cannot be compared at one size: the inner layer of {name} is "
                    f"{one.inner} times as wide as its model, and that of another is not."
                )
        return fitted

    def in_shared_precision(self, limits: Mapping[str, Limits]) -> "Example":
        """Return it in float32 where that is the finest in which all compute, with a note."""
        rounded = [name for name, one in limits.items() if "float64" not in one.precisions]
        if not rounded or not all("float32" in one.precisions for one in limits.values()):
            return self
        note = f"The numbers are those of float32, for {rounded[0]} is limited to that"
        return replace(self, precision="float32", notes=(*self.notes, note))

    def _within(self, name: str, limits: Limits) -> "Example":
        largest = {"layers": limits.layers, "heads": limits.heads, "max_length": limits.length}
        cut = {size: min(getattr(self.sizes, size), most) for size, most in largest.items() if most}
        sizes = limits.fitted(self.sizes.but(**cut))
        changes = [
            f"{size} is {getattr(sizes, size)} instead of {getattr(self.sizes, size)}"
            for size in SHAPED
            if getattr(sizes, size) != getattr(self.sizes, size)
        ]
        return replace(
            self,
            sizes=sizes,
            source=tuple(row[: sizes.max_length] for row in self.source),
            target=tuple(row[: sizes.max_length] for row in self.target),
            masks=tuple(kind for kind in self.masks if kind in limits.masks),
            cross=self.cross and limits.cross,
            notes=(*self.notes, *(f"{one}, for {name} is limited to that" for one in changes)),
        )


EXAMPLES: Mapping[str, Example] = {
    "small": Example(
        Sizes(d_model=8, heads=2, d_ff=12, layers=2, source_vocabulary=11, target_vocabulary=11),
        source=((5, 3, 8, 2, 7), (4, 9, 6, 0, 0)),
        target=((1, 6, 2, 9), (1, 7, 10, 0)),
    ),
    # The worked example of a published course: nine layers and a narrow inner layer.
    "course": Example(
        Sizes(
            d_model=6,
            heads=2,
            d_ff=3,
            layers=9,
            source_vocabulary=10,
            target_vocabulary=10,
            max_length=10,
        ),
        source=((1, 1, 4, 0), (4, 3, 2, 9)),
        target=((5, 2, 5, 0), (6, 7, 9, 8)),
    ),
    # A decoder-only model: fewer heads of keys, texts beyond the window and the trained length.
    "text": Example(
        Sizes(
            d_model=32,
            heads=4,
            d_ff=20,
            layers=2,
            source_vocabulary=11,
            target_vocabulary=11,
            max_length=16,
            kv_heads=2,
            trained_length=4,
        ),
        source=((5, 3, 8, 2, 7), (4, 9, 6, 1, 10)),
        target=((1, 6, 2, 9, 4, 4, 7, 3, 8), (1, 7, 10, 5, 3, 9, 2, 6, 5)),
    ),
}
"""The examples that go by a name."""


DECODER_ONLY = ("causal_layer", "language_model")


def demand_shared_masks(components: Collection[str], limits: Mapping[str, Limits]) -> None:
    """Raise :class:`BadExample` where `components` get a mask, and two backends share no kind."""
    get_masks = any(
        "mask" in own
        for one in components
        if one not in DECODER_ONLY  # those are called without a mask
        for own in COMPONENTS[one].inputs
    )
    for (name, first), (other, second) in combinations(limits.items(), 2) if get_masks else ():
        if first.masks and second.masks and not {*first.masks} & {*second.masks}:
            raise BadExample(
                f"They cannot be compared with one mask: {name} takes {_kinds(first.masks)}, and "
                f"{other} takes {_kinds(second.masks)}. Compare each with `paper`."
            )


def _kinds(masks: Collection[str]) -> str:
    """Return what kinds of masks are taken, as a reader says it."""
    return " or ".join("no mask" if kind == "none" else f"{kind} masks" for kind in masks)


def suited(given: Example, components: Collection[str]) -> Example:
    """Return the example that shows what `components` do: a text, where that is by default.

    In the default example no window is left, and every query has keys of its own.
    """
    default = given == EXAMPLES["small"] and bool(components)
    return EXAMPLES["text"] if default and set(components) <= {*DECODER_ONLY} else given


def example(given: str) -> Example:
    """Return the example of this name, or the one in this JSON file.

    Raises UnknownName for a name that is none, and :class:`BadExample` for anything else that is
    not one.
    """
    if not given.endswith(".json"):
        return EXAMPLES[require("example", given, EXAMPLES)]
    try:
        plain = json.loads(Path(given).read_text(encoding="utf-8"))
    except OSError as failure:
        raise BadExample(f"{given} cannot be read: {failure.strerror}. {FORM}") from failure
    except ValueError as failure:
        raise BadExample(f"{given} is no JSON: {failure}. {FORM}") from failure
    return _read(given, plain)


def _read(given: str, plain: Any) -> Example:
    if not isinstance(plain, dict) or not {"source", "target"} <= set(plain):
        raise BadExample(f"{given} holds no source and target. {FORM}")
    source, target = (_tokens(given, side, plain[side]) for side in ("source", "target"))
    if len(source) != len(target):
        raise BadExample(
            f"{given} has {len(source)} source and {len(target)} target sentences; each source "
            f"needs its target."
        )
    vocabulary = 1 + max(max(map(max, source)), max(map(max, target)))
    sizes = EXAMPLES["small"].sizes.but(
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        max_length=max(len(source[0]), len(target[0])),
    )
    return Example(_sized(given, sizes, plain.get("sizes", {})), source, target)


def _tokens(given: str, side: str, rows: Any) -> Tokens:
    good = (
        isinstance(rows, list)
        and rows
        and all(isinstance(row, list) and row and len(row) == len(rows[0]) for row in rows)
        and all(type(token) is int and token >= 0 for row in rows for token in row)
    )
    if not good:
        raise BadExample(f"The {side} in {given} is no table of tokens. {FORM}")
    return tuple(tuple(row) for row in rows)


def _sized(given: str, sizes: Sizes, changes: Any) -> Sizes:
    known = [field.name for field in fields(Sizes) if field.name != "dropout"]
    if not isinstance(changes, dict):
        raise BadExample(f"The sizes in {given} are no table of names and numbers. {FORM}")
    for name, value in changes.items():
        if name not in known:
            raise BadExample(f"{given}: {UnknownName('size', str(name), known)}")
        if type(value) is not int or value < 0:
            raise BadExample(f"{given}: {name} is {value!r}; it has to be a whole number.")
    return sizes.but(**changes)
