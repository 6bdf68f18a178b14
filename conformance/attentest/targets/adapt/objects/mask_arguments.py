"""The masks among the arguments of a call, and other inputs, by the words of their names."""

import re
from collections.abc import Mapping, Sequence

from attentest.targets.adapt.components import squashed, words_of
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import MASKS

_SIDES = {
    "source_mask": ("cross", "memory", "mem", "enc", "encoder", "src", "source", "e"),
    "target_mask": ("dec", "decoder", "tgt", "trg", "target", "self", "causal", "lookahead", "d"),
}
"""Words in the name of a mask that say which keys it hides; those of the source come first."""

_INPUTS = {
    "query": ("q", "query", "queries"),
    "key": ("k", "key", "keys"),
    "value": ("v", "value", "values"),
}
"""Words in the names of what attention gets, where each is in one name: `q_vec`, `k_vec`."""

_MARKS = frozenset(["keep", "allow", "allowed", "visible", "blocked", "permitted", "hide", "bias"])
"""Words for a mask in a name that says its side, too."""

_NO_MARKS = frozenset(["prob", "rate", "ratio", "dropout", "len", "lens", "length", "lengths"])
"""Words next to which they are none, as in `keep_prob`."""

_OF_HEADS = re.compile("head_?mask")
"""Names of factors of the heads, which hide no keys."""


def inputs_by_words(free: Sequence[str], found: Mapping[str, str]) -> dict[str, str]:
    """Return queries, keys and values by a word of their names, {} where one has none or several.

    None of them may be known by its whole name.
    """
    left = [one for one in free if "mask" not in squashed(one)]
    named = {
        role: [own for own in left if set(marks) & set(words_of(own))]
        for role, marks in _INPUTS.items()
    }
    alone = all(len(own) == 1 for own in named.values())
    own = {role: one[0] for role, one in named.items() if one}
    return own if alone and len(set(own.values())) == 3 and not {*own} & {*found} else {}


def sequences_by_sides(free: Sequence[str], found: Mapping[str, str]) -> dict[str, str]:
    """Return what carries the target and the memory by the words of its side, {} for neither."""
    left = [one for one in free if not says_mask(one) and one not in found.values()]
    source, target = _SIDES.values()
    of_source = [one for one in left if set(source) & set(words_of(one))]
    of_target = [one for one in left if set(target) & set(words_of(one))]
    if {"x", "memory"} & {*found} or len(of_source) != 1 or len(of_target) != 1:
        return {}
    own = {"x": of_target[0], "memory": of_source[0]}
    return own if own["x"] != own["memory"] else {}


def says_mask(own: str) -> bool:
    """Say whether a name is that of a mask of one side, as `memory_mask` or `tgt_keep`."""
    said = set(words_of(own))
    return "mask" in squashed(own) or bool(said & _MARKS and not said & _NO_MARKS)


def mask_of(carrier: str, free: Sequence[str]) -> str:
    """Return the mask that is named after the argument of keys or of a memory, "" for none."""
    wanted = squashed(f"{carrier}mask")
    return next((own for own in free if carrier and squashed(own) == wanted), "")


def masks_of_sides(free: Sequence[str], found: dict[str, str]) -> None:
    """Take the one mask left for each side, by a word of its name: `padding_mask_enc`."""
    left = [one for one in free if one not in found.values() and says_mask(one)]
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
