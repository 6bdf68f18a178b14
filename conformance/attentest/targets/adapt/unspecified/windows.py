"""Recognises attention to near positions alone, and measures what an argument for it counts.

A short text does not show a window that is longer than it, and a clause may draw a longer one.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import Filling, is_required
from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.probing import SIZES, Given, Probe
from attentest.targets.adapt.reading import Reading, Windowed
from attentest.targets.signatures import constructor_arguments

_LENGTH = 24
"""The positions of a probed text, of which all are moved; most clauses draw shorter ones."""

LONG = 600
"""The positions of a text of which few are moved: the longest that clauses draw."""

_EDGE = 1e-6
"""The change of the last row that a position reaches, by which a window ends; biases fade out."""


def window(probe: Probe, adapter: Adapter) -> str:
    """Return which positions a position sees, in a phrase, "" where these are all of them."""
    if adapter.component not in probing.SEQUENCES:
        return ""
    adapter = replace(adapter, causal=False)  # the mask is left out
    first = _reached(probe, adapter, [0])
    if first is None:
        return ""
    if not 1 < (wide := int(first[0].sum())) < _LENGTH:
        return _long(probe, adapter) if wide == _LENGTH else ""
    reached = _reached(probe, adapter, range(_LENGTH))
    for words, one in _bands(wide, _LENGTH).items():
        if reached is not None and torch.equal(reached, one):
            return words
    return ""


def with_window(
    code: Code, probe: Probe, adapter: Adapter, found: FoundTable, reading: Reading
) -> FoundTable:
    """Return `found` with what the argument for a window counts, by short texts at two windows.

    Raises Windowed where it counts something else.
    """
    if "window" not in code.known or "attention_window" in reading.choices:
        return found
    if counted := _counted(code, probe, adapter, reading):
        return replace(found, choices={**found.choices, "attention_window": counted})
    wide = _WINDOWS[0]
    seen = _seen_within(code, probe, adapter, wide) or "all that its mask shows"
    raise Windowed(
        f"{code.name} is not judged as {code.component}: built with a window of {wide}, a position "
        f"sees {seen}. --choice attention_window=NAME (in Python: choices={{'attention_window': "
        f"NAME}}) says what is meant: with-query for {wide} positions, its own among them, "
        f"beside-query for {wide + 1}."
    )


def with_window_left(
    code: Code, probe: Probe, adapter: Adapter, reading: Reading
) -> tuple[Code, Probe]:
    """Return `code` with its window at its default where the argument for it counts nothing sure.

    It is returned as it is where it has none, and where the window has to be given.
    """
    made = code.construction
    if made is None or "window" not in code.known or "attention_window" in reading.choices:
        return code, probe
    left = _without_window(made)
    if "window" in left.known or _counted(code, probe, adapter, reading):
        return code, probe
    try:
        with probing.undisturbed():
            built = left(SIZES)
    except Exception:  # settings without a default, or code that a user wrote
        return code, probe
    return replace(code, construction=left, build=left), _built(probe, built)


def _without_window(made: Construction) -> Construction:
    """Return `made` and the settings that it gets without the windows that have a default."""
    arguments = constructor_arguments(made.make)
    kept = {}
    for own, one in made.fillings.items():
        if isinstance(one.value, Construction):
            inner = _without_window(one.value)
            kept[own] = Filling(f"({inner.words})", inner, inner.known)
        elif one.settles != {"window"} or (own in arguments and is_required(arguments[own])):
            kept[own] = one
    return replace(made, fillings=kept)


def _built(probe: Probe, made: Any) -> Probe:
    """Return `probe` of a module that was built otherwise."""
    return replace(probe, built=made.to(probe.dtype).eval())


def _counted(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> str:
    """Return the choice that says what the argument for a window counts, "" for none."""
    if reading.strict:
        return ""
    meanings = {
        {wide: "with-query", wide + 1: "beside-query"}.get(_wide(code, probe, adapter, wide), "")
        for wide in _WINDOWS
    }
    return meanings.pop() if len(meanings) == 1 else ""


_WINDOWS = (4, 7)
"""The windows that code is built with."""


def _wide(code: Code, probe: Probe, adapter: Adapter, window: int) -> int:
    """Return the number of positions that the last one sees in code with a window, 0 for others.

    The first one may see the next, which is a mistake: more than that is a window to both sides.
    """
    with probing.undisturbed():
        built = _built(probe, code.build(SIZES.but(window=window)))
    reached = _reached(built, replace(adapter, causal=False), range(_LENGTH))
    if reached is None or int(reached[:, 0].sum()) > 2:
        return 0
    last = reached[:, -1]
    wide = int(last.sum())
    return wide if bool(last[_LENGTH - wide :].all()) else 0


def _seen_within(code: Code, probe: Probe, adapter: Adapter, wide: int) -> str:
    """Return which positions a position sees where `code` is built with a window."""
    with probing.undisturbed():
        return window(_built(probe, code.build(SIZES.but(window=wide))), adapter)


def _before(wide: int) -> str:
    """Return the phrase on a window of earlier positions."""
    return f"itself and the {wide - 1} position{'s' * (wide > 2)} before it alone"


def _long(probe: Probe, adapter: Adapter) -> str:
    """Return the phrase on a window that is longer than the first text, "" for none."""
    first = _changes(probe, adapter, [0], LONG)
    if first is None or not (wide := edge(first[0])):
        return ""
    place = LONG // 2
    other = _changes(probe, adapter, [place], LONG)
    if other is None:
        return ""
    bands, reached = _bands(wide, LONG), other[0] > _SEEN
    return next((words for words, one in bands.items() if torch.equal(one[place], reached)), "")


def edge(changes: Tensor) -> int:
    """Return the number of rows that the first position reaches, 0 for all, and for no window.

    `changes` are those of the rows (T). A bias that falls with the distance fades out.
    """
    reached = changes > _SEEN
    wide = int(reached.sum())
    sharp = bool(reached[:wide].all()) and 0 < wide < len(reached)
    return wide if sharp and changes[wide - 1] > _EDGE else 0


def _bands(wide: int, length: int) -> dict[str, Tensor]:
    """Return which rows each position reaches in windows of a width, by the phrases on them."""
    rows = torch.arange(length)
    ahead = rows[None, :] - rows[:, None]
    number = f"{wide - 1} position{'s' * (wide > 2)}"
    return {
        _before(wide): (ahead >= 0) & (ahead < wide),
        f"the {number} to each side of it alone": ahead.abs() < wide,
    }


_SEEN = 1e-9
"""The smallest change of a row that a position reaches."""


def _reached(probe: Probe, adapter: Adapter, places: range | list[int]) -> Tensor | None:
    """Return which rows of the output each of `places` reaches, None where a call fails."""
    changes = _changes(probe, adapter, places, _LENGTH)
    return None if changes is None else changes > _SEEN


def _changes(
    probe: Probe, adapter: Adapter, places: range | list[int], length: int
) -> Tensor | None:
    """Return the changes of the rows (places, T) with each of `places`, None where a call fails."""
    given = probe.given(adapter, joined=True)
    role = "query" if "query" in given else "x"
    source = torch.Generator().manual_seed(2)
    shape = (1, length, given[role].shape[-1])
    text = torch.randn(shape, generator=source, dtype=torch.float64).to(probe.dtype)
    texts = [text, *(_moved(text, place) for place in places)]
    rows: list[Tensor] = []
    for first in range(0, len(texts), probe.batch):  # each sample is a text of its own
        some = texts[first : first + probe.batch]
        filled = [*some, *[text] * (probe.batch - len(some))]
        output = probe.called(adapter, _with(given, role, torch.cat(filled)))
        if isinstance(output, str) or output.shape != (probe.batch, *shape[1:]):
            return None
        rows += output[: len(some)].unbind()
    before, *after = rows
    return torch.stack([(before - one).abs().amax(-1) for one in after])


def _moved(text: Tensor, place: int) -> Tensor:
    """Return `text` with other numbers at one position."""
    moved = text.clone()
    moved[:, place] = moved[:, place].flip(-1) + 1.0
    return moved


def _with(given: Given, role: str, text: Tensor) -> Given:
    """Return `given` with `text` for every input that is a sequence."""
    return {name: text if one is given[role] else one for name, one in given.items()}
