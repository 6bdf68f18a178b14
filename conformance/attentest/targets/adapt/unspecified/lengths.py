"""Recognises lengths that do something else than hide the keys of padding.

Code that unpads its input and pads its output again hides the keys of padding, and gives a row of
padding no output, or the output of padding alone. No caller reads such a row.
"""

from dataclasses import replace

import torch
from torch import Tensor

from attentest.targets.adapt import probing
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.masks import Style
from attentest.targets.adapt.probing import Given, Probe
from attentest.targets.adapt.reading import Unclear

_KEYS = 5
"""The length of keys in a call of code that may take one length alone: that of the queries."""

_OF_ONE_SEQUENCE = ("encoder_layer", "encoder")
"""Components whose queries are their keys: the same rows are padding."""


_OF_ONE_LENGTH = (
    "{} was built as {}, and takes sequences of its greatest length alone: a call with {} rows "
    "succeeds where that is its greatest length, and fails where it is {}. It is judged with "
    "sequences of several lengths: take the length of the input, as in x.size(1) or "
    "pe[:, : x.size(1)]."
)


def demand_any_length(code: Code, adapter: Adapter) -> None:
    """Raise Unclear where a call succeeds with sequences of the greatest length, and not below."""
    if code.construction is None or "max_length" not in code.construction.known:
        return
    rows = _rows(Probe(None).given(adapter, keys=_KEYS))
    sizes = probing.SIZES.but(max_length=rows)
    try:
        with probing.undisturbed():
            whole = code.construction(sizes) if code.inner is not None else code.build(sizes)
            module = (code.inner(whole, sizes) if code.inner is not None else whole).double().eval()
    except Exception:  # code that a user wrote may raise anything
        return
    probe = Probe(module)
    given = probe.given(adapter, keys=rows)
    if _rows(given) == rows and not probing.with_layout(probe, adapter, "", given)[1]:
        longest = probing.SIZES.max_length
        words = code.construction.words
        raise Unclear(_OF_ONE_LENGTH.format(code.name, f"{code.name}({words})", rows, longest))


def _rows(given: Given) -> int:
    """Return the length of the first sequence of vectors in `given`, or of ids where none is."""
    held = [one for one in given.values() if isinstance(one, Tensor) and one.dim() > 1]
    return next(one.shape[1] for one in sorted(held, key=lambda one: one.dim() < 3))


def shows_wrong_lengths(probe: Probe, adapter: Adapter, role: str, style: Style, keys: int) -> bool:
    """Say whether lengths hide one key more or less than they say, or the others in their place."""
    keys = probing.keys_of(adapter, role, keys)
    tried = replace(adapter, styles={**adapter.styles, role: style})
    (keep,) = probing.masks_for(style, probe, tried, keys)
    more, less = keep.roll(1, -1), keep.roll(-1, -1)
    more[..., 0], less[..., -1] = True, False
    return any(
        probing.mask_shows(probe, tried, role, keep, keys=keys, shown=one)
        for one in (more, less, ~keep)
    )


def hide_queries(probe: Probe, adapter: Adapter, role: str, style: Style, keys: int) -> bool:
    """Say whether lengths hide the other keys, and the rows of the queries there as well.

    The rows of queries that are no padding must reach the keys that are none, and no others.
    """
    if not adapter.arguments.joined and adapter.component not in _OF_ONE_SEQUENCE:
        return False
    keys = probing.keys_of(adapter, role, keys)
    tried = replace(adapter, styles={**adapter.styles, role: style})
    (keep,) = probing.masks_for(style, probe, tried, keys)
    real = keep.transpose(-1, -2)
    return any(
        probing.mask_shows(probe, tried, role, keep, keys=keys, shown=torch.where(real, keep, seen))
        for seen in (torch.tensor(False), torch.tensor(True), ~keep)
    )


def of_each_head(name: str, own: str, is_needed: bool) -> str:
    """Return the question about the mask `own` of `name` that lengths alone do not break."""
    left = "" if is_needed else f": --give {own}=None judges it without"
    return (
        f"No mask of a shape that was tried hides a key by the {own} of {name}: it may need an "
        f"entry for each head, (B, H, Q, K){left}."
    )
