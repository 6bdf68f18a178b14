"""A comparison in words: why choices matter, what explains a difference, and what does not."""

from collections.abc import Sequence

from attentest.analysis.identify.finding import format_value
from attentest.studies.comparison.parts import (
    BOUND,
    EQUAL,
    EXPLAINED,
    ChoiceRow,
    Departure,
    Explanation,
    Flip,
)


def reasons(rows: Sequence[ChoiceRow]) -> list[str]:
    """Return why each differing choice matters, and the clause that judges it."""
    differing = [row for row in rows if row.differs]
    if not differing:
        return ["They make the same choices."]
    lines = [f"{row.choice}: {row.why} (attentest explain {row.clause})" for row in differing]
    return ["Why the differing choices matter:", *lines]


def in_full(one: Explanation) -> list[str]:
    """Return what is to say of a pair: a sentence, then indented lines."""
    if one.status == EQUAL:
        lines = [f"{pair(one)}: equal, to {one.parting.difference:.1e}."]
    elif one.status == EXPLAINED:
        lines = [f"{pair(one)}: {departure(one.parting)}. Explained by {_count(one.options)}:"]
        lines += [f"  {flip(option)}" for option in one.options]
        lines += [f"  {_left(one)}"]
    else:
        lines = [f"{pair(one)}: NOT EXPLAINED. {departure(one.parting)}."]
    lines += [f"  {sentence}" for sentence in _astray(one)]
    if one.silent:
        shown = "; ".join(flip(option) for option in one.silent)
        lines += [f"  Differ, and do not show on these inputs: {shown}."]
    return lines


def in_short(one: Explanation) -> str:
    """Return what is to say of a pair in one paragraph."""
    if one.status == EQUAL:
        return f"{pair(one)}: equal, to {one.parting.difference:.1e}."
    if one.status == EXPLAINED:
        options = "; ".join(flip(option) for option in one.options)
        return (
            f"{pair(one)}: up to {one.parting.difference:.2g}, from {one.parting.step} on; "
            f"{_count(one.options)}: {options}."
        )
    return " ".join([f"{pair(one)}: NOT EXPLAINED. {departure(one.parting)}.", *_astray(one)])


def pair(one: Explanation) -> str:
    """Return which two are compared."""
    return f"{one.other} against {one.first}"


def departure(where: Departure) -> str:
    """Return where numbers first differ, and by how much they do at most."""
    how = "in" if where.inside else "on the way to"
    return f"the numbers first differ {how} {where.step}, and by up to {where.difference:.2g}"


def flip(option: Flip) -> str:
    """Return a choice with the two ways in which it is settled."""
    return f"{option.choice} {format_value(option.first)} -> {format_value(option.other)}"


def _astray(one: Explanation) -> list[str]:
    return [
        f"{name} is not what the reference does under the same choices: {departure(where)}."
        for name, where in (one.astray or {}).items()
    ]


def _left(one: Explanation) -> str:
    was = f"{one.left:.1e} is left of {one.parting.difference:.2g}"
    if len(one.options) == 1:
        return f"With it changed in the reference, {was}."
    return (
        f"With all of these changed in the reference, {was}; without any one of them more than "
        f"{BOUND:g}."
    )


def _count(options: tuple[Flip, ...]) -> str:
    return "one choice" if len(options) == 1 else f"{len(options)} choices"
