"""The meaning of a mask where no word says it and no probing call shows it exactly.

A mask that hides other keys than it marks, hides one in part or in some heads, or hides rows of
queries, still shows which entries hide. Where it does not, nothing says what is meant.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.encoders.stack import KEEP
from attentest.targets.adapt.makers.contrary import demand_agreement
from attentest.targets.adapt.masks import COLUMN, STYLES, Style, meanings_by_words
from attentest.targets.adapt.names import MASKS
from attentest.targets.adapt.probing import (
    HIDDEN,
    Given,
    Probe,
    carrier,
    changes,
    keys_of,
    mask_shows,
    masks_for,
)
from attentest.targets.adapt.reading import Reading, Unmeant

_DISTINCT = 1.5
"""The factor by which a mask has to hide fewer keys, or a hidden one to count less."""
_NEARLY = 1e3
"""The factor by which a key that is hidden but for rounding counts less than the others."""
_SLIGHT = 1e-6
"""The difference of outputs that no mask makes: one that hides as little is ignored."""
_NONE = 1e-9
"""The change of a row that a position does not reach."""


def leaning(probe: Probe, adapter: Adapter, role: str, keys: int) -> str:
    """Return the meaning that a mask which hides one key has by what it does, though wrongly.

    "" where the numbers do not tell "keep" from "blocks". A mask that is added hides its key from
    rows that all others reach, or nearly so where one of True and False has no effect.
    """
    keys = keys_of(adapter, role, keys)
    changed = [
        (keep, blocks)
        for style in _styles("keep")
        if (keep := _changes(probe, adapter, role, style, keys))
        and (blocks := _changes(probe, adapter, role, replace(style, meaning="blocks"), keys))
    ]
    for keep, blocks in changed:
        if keep.has_numbers != blocks.has_numbers:  # a row that is causal, too, has no key left
            return "keep" if keep.has_numbers else "blocks"
        if keep.has_numbers and (found := _fewer(keep, blocks)):
            return found
    idle = all(torch.equal(one.hidden, one.none) for pair in changed for one in pair)
    for style in _styles("additive"):
        added = _changes(probe, adapter, role, style, keys)
        if added and added.has_numbers and (added.misses_most or (idle and added.hides_nearly)):
            return "additive"
    each = (_less(*pair) or _row(*pair) for pair in changed if pair[0].has_numbers)
    return next((found for found in each if found), "")


def _styles(meaning: str) -> list[Style]:
    return [one for one in STYLES if one.meaning == meaning]


@dataclass(frozen=True)
class _Changes:
    """Changes of the rows (keys, rows) with each key under a mask that hides one, and without.

    `own` says that a key is a row, too.
    """

    hidden: Tensor
    none: Tensor
    own: bool

    @property
    def has_numbers(self) -> bool:
        """Whether all rows are numbers under the mask."""
        return bool(self.hidden.isfinite().all())

    @property
    def unreached(self) -> float:
        """The mean number of keys that do not reach a row, of the rows that some key reaches."""
        reached = self._of_others() > _NONE
        rows = reached.any(0)
        return float((~reached[:, rows]).sum() / max(int(rows.sum()), 1))

    @property
    def misses_most(self) -> bool:
        """Whether the hidden key does not reach rows that every other key reaches."""
        missed = (self._of_others() <= _NONE).sum(-1)
        others = torch.cat([missed[:HIDDEN], missed[HIDDEN + 1 :]])
        return bool(missed[HIDDEN] > others.max())

    @property
    def hides_nearly(self) -> bool:
        """Whether the hidden key changes other rows by next to nothing, and the others do not."""
        return self.of_key * _NEARLY < self.of_others

    @property
    def of_key(self) -> float:
        """The mean change of a row with the key that is hidden."""
        return self._means()[HIDDEN]

    @property
    def of_others(self) -> float:
        """The mean change of a row with another key."""
        means = self._means()
        return (sum(means) - means[HIDDEN]) / (len(means) - 1)

    @property
    def is_of_row(self) -> bool:
        """Whether the row of the hidden key changes otherwise, and no other row does."""
        hidden, none = self._of_others(), self.none
        if not self.own or not (hidden[:, HIDDEN] > _NONE).any():
            return False
        other = ((self.hidden - none).abs() > _NONE).any(0)
        return int(other.sum()) == 1 and bool(other[HIDDEN])

    def _of_others(self) -> Tensor:
        """Return the changes without those of the row that a key itself is."""
        return self.hidden.clone().fill_diagonal_(0.0) if self.own else self.hidden

    def _means(self) -> list[float]:
        found = self._of_others()
        return [float(one) / (found.shape[-1] - self.own) for one in found.sum(-1)]


def _fewer(keep: _Changes, blocks: _Changes) -> str:
    """Return under which meaning clearly fewer keys are hidden, "" where none does."""
    if keep.unreached * _DISTINCT < blocks.unreached:
        return "keep"
    return "blocks" if blocks.unreached * _DISTINCT < keep.unreached else ""


def _less(keep: _Changes, blocks: _Changes) -> str:
    """Return under which meaning the hidden key counts less, and the others more."""
    if keep.of_key * _DISTINCT < blocks.of_key and keep.of_others > blocks.of_others:
        return "keep"
    less = blocks.of_key * _DISTINCT < keep.of_key and blocks.of_others > keep.of_others
    return "blocks" if less else ""


def _row(keep: _Changes, blocks: _Changes) -> str:
    """Return under which meaning a mask hides all keys from the row of the key, and no other."""
    if keep.is_of_row == blocks.is_of_row:
        return ""
    return "keep" if keep.is_of_row else "blocks"


def _changes(probe: Probe, adapter: Adapter, role: str, style: Style, keys: int) -> _Changes | None:
    """Return what changes under a mask of `style`, None where a call shows nothing."""
    asked = _asked(role)
    tried = replace(adapter, styles={**adapter.styles, role: style})
    given = probe.given(tried, keys=keys)
    moved = carrier(asked, given)
    keep = _mask(style, probe, tried, role, keys)
    hidden, none = (
        changes(probe, tried, given, base, moved) for base in ({**given, asked: keep}, given)
    )
    if hidden is None or none is None or hidden.shape != none.shape:
        return None  # a mask of this shape is refused, or broadcasts to another output
    if not none.isfinite().all():
        return None
    rows, bare = (one.flatten(1, -2).mean(1) for one in (hidden, none))
    own = any(given[moved] is value for name, value in given.items() if name in ("query", "x"))
    return _Changes(rows, bare, own)


def _asked(role: str) -> str:
    """Return the input of the contract that a mask argument carries."""
    return "mask" if role == "padding" else role


def _mask(style: Style, probe: Probe, adapter: Adapter, role: str, keys: int) -> Tensor:
    """Return a mask that probes `style`, the first for one of padding, which is narrow."""
    tried: Sequence[Tensor] = masks_for(style, probe, adapter, keys)
    return tried[0] if role == "padding" else tried[-1]


def demand_polarity(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> None:
    """Raise Unmeant for a mask whose meaning nothing shows, Contrary where its file denies it.

    A mask that changes nothing is ignored, whatever it means.
    """
    slots = {role: own for role, own in adapter.arguments.roles.items() if role in MASKS}
    if adapter.arguments.padding:
        slots["padding"] = adapter.arguments.padding
    for slot, own in slots.items():
        style = adapter.styles.get(slot)
        ordered = adapter.causal and slot != "source_mask"  # nothing orders the keys of a memory
        if style is None or ordered or _is_said(code, adapter, reading, own):
            continue
        if _is_shown(probe, replace(adapter, causal=False), slot, style):
            _demand_no_column(code, probe, replace(adapter, causal=False), slot, own)
            continue
        place = f"{own}:" * (len(slots) > 1)
        filled = _weak_fill(probe, replace(adapter, causal=False), slot, style)
        without = "" if adapter.needs_mask else f", and --give {own}=None judges it without it"
        raise Unmeant(
            f"Nothing says what an entry of the {own} of {code.name} means: it changes the output, "
            f"and hides no key of those that a probing call marks, neither as one that says what "
            f"may be attended nor as one that says what is hidden. {filled}Say which one is meant: "
            f"--set mask={place}keep or --set mask={place}blocks (in Python: mask='{place}keep')"
            f"{without}."
        )
    demand_agreement(code, adapter, reading)


def _demand_no_column(code: Code, probe: Probe, adapter: Adapter, slot: str, own: str) -> None:
    """Raise Unmeant where a mask without effect has one as a column (B, K, 1) for each sample."""
    asked, keys = _asked(slot), keys_of(adapter, slot, 5)
    given = probe.given(adapter, keys=keys)
    keep = torch.ones((probe.batch, 1, 1, keys), dtype=torch.bool)
    keep[..., 1] = False
    forms = [adapter.styles[slot], *(Style(COLUMN, entries) for entries in ("bool", "float"))]
    moved = []
    for style in forms:
        tried = replace(adapter, styles={**adapter.styles, slot: style})
        answers = [probe.called(tried, {**given, asked: one}) for one in (keep | True, keep)]
        moved.append(_differs(*answers))
    if any(moved[1:]) and not moved[0]:
        raise Unmeant(
            f"{code.name} is not judged with its mask: {own} has an effect as one column for each "
            f"sample, (B, L, 1), and none in the forms of a mask that this spec has. --give "
            f"{own}=None (in Python: given={{{own!r}: None}}) judges it without, where it can be "
            f"left out."
        )


def _differs(one: Tensor | str, other: Tensor | str) -> bool:
    """Say whether two outputs differ by more than rounding; a call that fails shows nothing."""
    if isinstance(one, str) or isinstance(other, str) or one.shape != other.shape:
        return False
    return float((one - other).abs().max()) > _CHANGED


_CHANGED = 1e-3
"""A difference of outputs that is no rounding."""


class _Fills(TorchFunctionMode):
    """Notes the numbers that masked scores are filled with, each with its line."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, float] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Note the number where `func` fills by a mask."""
        if getattr(func, "__name__", "") in ("masked_fill", "masked_fill_"):
            value = (kwargs or {}).get("value", args[2] if len(args) > 2 else None)
            place = next(filter(None, map(_place, _frames())), "")
            if isinstance(value, int | float) and place:
                self.found[place] = float(value)
        return func(*args, **(kwargs or {}))


def _frames() -> Iterator[FrameType]:
    frame = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]  # the outermost has none


def _place(frame: FrameType) -> str:
    """Return the file and line of a frame, "" for one of torch or of an installed package."""
    path = Path(frame.f_code.co_filename)
    return "" if {"torch", "site-packages"} & {*path.parts} else f"{path.name}:{frame.f_lineno}"


_HIDES = -50.0
"""A number that hides a key where it is added to usual scores, or put in their place."""


def _weak_fill(probe: Probe, adapter: Adapter, slot: str, style: Style) -> str:
    """Return a sentence on a number that masked scores get and that hides nothing, "" for none."""
    number = keys_of(adapter, slot, 5)
    keep = _mask(style, probe, adapter, slot, number)
    fills = _Fills()
    with fills:
        probe.called(adapter, {**probe.given(adapter, keys=number), _asked(slot): keep})
    weak = [(place, value) for place, value in fills.found.items() if value > _HIDES]
    if not weak:
        return ""
    place, value = weak[0]
    return f"What it marks is filled with {value:g} ({place}), which hides no key. "


def _is_said(code: Code, adapter: Adapter, reading: Reading, own: str) -> bool:
    """Say whether the user, words, or the ids that a mask is made of give its meaning."""
    of_ids = code.inner is not None and code.inner.stack and own == KEEP
    others = [one for one in adapter.signature.parameters if "_mask" in one]
    words = meanings_by_words(own, code.words, others=others)[0]
    return bool(of_ids or reading.meaning_of(own) or words)


def _is_shown(probe: Probe, adapter: Adapter, slot: str, style: Style) -> bool:
    """Say whether a mask shows its meaning, exactly or in part, or has no effect."""
    asked = _asked(slot)
    for keys in (7, 5):
        number = keys_of(adapter, slot, keys)
        given = probe.given(adapter, keys=number)
        keep = _mask(style, probe, adapter, slot, number)
        if isinstance(probe.called(adapter, {**given, asked: keep}), str):
            continue
        return (
            mask_shows(probe, adapter, asked, keep, keys=number)
            or leaning(probe, adapter, slot, keys) == style.meaning
            or _is_ignored(probe, adapter, {**given, asked: keep}, asked)
        )
    return True


def is_without_effect(probe: Probe, adapter: Adapter, slot: str) -> bool:
    """Say whether no mask of the argument that carries `slot` changes the output."""
    style = adapter.styles.get(slot)
    if style is None:
        return False
    bare = replace(adapter, causal=False)
    keys = keys_of(bare, slot, 7)
    given = {**probe.given(bare, keys=keys), slot: _mask(style, probe, bare, slot, keys)}
    if isinstance(probe.called(bare, given), str):
        return False
    return _is_ignored(probe, bare, given, slot)


def _is_ignored(probe: Probe, adapter: Adapter, given: Given, asked: str) -> bool:
    """Say whether the output is that under the opposite mask, and that under one of ones.

    No number under either mask is a mistake, whatever it means.
    """
    keep = given[asked]
    one, other, visible = (
        probe.called(adapter, {**given, asked: mask})
        for mask in (keep, ~keep, torch.ones_like(keep))
    )
    return _alike(one, other) and (_alike(one, visible) or not _has_numbers(one))


def _alike(one: Tensor | str, other: Tensor | str) -> bool:
    """Say whether two outputs are alike; a call that fails shows nothing."""
    if isinstance(one, str) or isinstance(other, str):
        return True
    numbers = _has_numbers(one) or _has_numbers(other)
    return not numbers or bool(((one - other).abs() <= _SLIGHT).all())


def _has_numbers(output: Tensor | str) -> bool:
    return isinstance(output, Tensor) and bool(output.isfinite().any())
