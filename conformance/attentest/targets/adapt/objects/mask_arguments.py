"""The masks among the arguments of a call, by the names that people give them."""

import re
from collections.abc import Sequence

from attentest.targets.adapt.components import squashed, words_of
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import MASKS

_SIDES = {
    "source_mask": ("cross", "memory", "mem", "enc", "encoder", "src", "source"),
    "target_mask": ("dec", "decoder", "tgt", "trg", "target", "self", "causal", "lookahead"),
}
"""Words in the name of a mask that say which keys it hides; those of the source come first."""

_OF_HEADS = re.compile("head_?mask")
"""Names of factors of the heads, which hide no keys."""


def mask_of(carrier: str, free: Sequence[str]) -> str:
    """Return the mask that is named after the argument of keys or of a memory, "" for none."""
    wanted = squashed(f"{carrier}mask")
    return next((own for own in free if carrier and squashed(own) == wanted), "")


def masks_of_sides(free: Sequence[str], found: dict[str, str]) -> None:
    """Take the one mask left for each side, by a word of its name: `padding_mask_enc`."""
    left = [one for one in free if one not in found.values() and "mask" in squashed(one)]
    sides: dict[str, list[str]] = {role: [] for role in _SIDES}
    for own in left:
        said = words_of(own)
        meant = [role for role, marks in _SIDES.items() if set(marks) & set(said)]
        if meant:
            sides[meant[0]].append(own)
    for role, named in sides.items():
        if len(named) == 1 and role not in found:
            found[role] = named[0]


def any_mask(free: Sequence[str], wanted: Sequence[str], found: dict[str, str]) -> None:
    """Take the one argument that is called a mask in some way for the one mask that is wanted.

    Where there is none, the one that holds lengths by its name is taken.
    """
    masks = [role for role in wanted if role in MASKS]
    if len(masks) != 1 or masks[0] in found:
        return
    left = [one for one in free if one not in found.values() and not _OF_HEADS.search(one)]
    named = [one for one in left if "mask" in squashed(one)] or list(filter(is_length, left))
    if len(named) == 1:
        found[masks[0]] = named[0]
