"""Constants that a component reads as sizes: it is judged in copies of its files with others."""

import inspect
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from keyword import iskeyword
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from attentest.results.text import summary
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import (
    Construction,
    construction,
    copied_at,
    sizes_needed,
)
from attentest.targets.adapt.fillings import STACKS, Filling, filling_of, fixed, head_width
from attentest.targets.adapt.names import SIZES as NAMES
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Contrary, Reading, Uncallable, Unclear, Uncovered
from attentest.targets.constants.copies import SECONDS, numbers_named
from attentest.targets.constants.layers import layers_of_code
from attentest.targets.constants.numbers_read import (
    HEAD_WIDTH_CODE,
    contradiction,
    numbers_lacking,
    numbers_of_file,
    numbers_of_process,
    numbers_read,
)
from attentest.targets.models.size_names import size_by_words


class WithConstants(Protocol):
    """Code that may read constants as sizes."""

    @property
    def name(self) -> str:
        """The name of the code."""

    @property
    def constants(self) -> Mapping[str, Filling]:
        """The constants that are sizes."""

    def as_written(self) -> Any:
        """Return the code with its constants as they are, None where that cannot be."""

    def with_constants_of_parts(self, reading: Reading) -> Any:
        """Return the code with constants that its arguments say as well, None for no such one."""


C = TypeVar("C", bound=WithConstants)
R = TypeVar("R")

_SPLIT = frozenset(["d_model", "heads"])
"""The sizes that say how wide a head is. Other constants are left as they are, but beside these."""

ASSUMED = (
    "assumed that constants of the code are sizes, and judged in copies of its files that have "
    "others in their place ({}); --give NAME=VALUE leaves one as it is"
)


def varied(thing: Callable[..., Any], component: str, reading: Reading) -> Construction:
    """Return how `thing` is built, with the constants that are sizes no argument says."""
    built = construction(thing, component, reading)
    found = constants_of(thing, component, reading, built)
    if not found:
        return built
    return built.with_constants(found)


def constants_of(
    thing: Callable[..., Any],
    component: str,
    reading: Reading,
    built: Construction | None = None,
    *,
    said: bool = False,
    is_called: bool = True,
) -> dict[str, Filling]:
    """Return the constants that are sizes of `thing` which `built` does not say.

    `said` asks for those that it says, too, as they are read by parts that get no argument of it.
    Where what is built cannot be called (`is_called`), a number of heads may be why.
    There are none where the width of a head and what it follows from are said. Unclear where they
    contradict each other, and where no copy can be made.
    """
    live, named = numbers_of_process(thing), numbers_named(thing)
    if not (live or named):
        return {}
    read = live or {own: named[own] for own in numbers_read(thing) if own in named}
    arguments = built.arguments if built is not None else ()
    given = {
        own: fixed(reading.given[own])
        for own in read
        if own in reading.given and own not in arguments
    }
    if (
        built is not None
        and not live
        and (own := _heads_in_calls(named, component, built, is_called=is_called))
    ):
        read = {**read, own: named[own]}
    found = {
        own: one
        for own, one in _fillings(read, component, reading, [*named]).items()
        if said or not _is_said(one, built)
    }
    if built is not None and not live:
        rest = {own: value for own, value in named.items() if own not in reading.given}
        found |= layers_of_code(rest, component, built, found)
    sizes = _SPLIT | {"layers"} if component in STACKS else _SPLIT
    if not (given or any(_is_head_width(one) or one.settles & sizes for one in found.values())):
        return {}
    found |= given
    _demand_constant_sizes(thing, found, built)
    if any(map(_is_head_width, found.values())):
        of_file = {own: named[own] for own in numbers_of_file(thing) if own in named}
        missing = numbers_lacking(sys.modules[thing.__module__])
        held = {own: value for own, value in {**of_file, **read}.items() if own not in missing}
        _demand_agreement(thing, held, component, reading)
    if live:
        raise Unclear(
            f"{thing.__name__} reads constants of the code as sizes ({words(found)}), and is "
            f"defined in what runs: put it into a file of its own, which is run again with others, "
            f"or make them arguments."
        )
    _demand_copies(thing, found)
    return found


def _heads_in_calls(
    named: Mapping[str, Any], component: str, built: Construction, *, is_called: bool
) -> str:
    """Return the name of the one number of heads that code has, where no argument says it.

    It is a keyword or a default of a part, as in `Attention(d_model, num_heads=8)`, or assigned by
    one; "" for none, and where a layer can be built with any width and called (`is_called`).
    """
    if "heads" in built.known or "heads" not in sizes_needed(component):
        return ""
    own = [one for one, value in named.items() if squashed(one) in NAMES["heads"] and value != 1]
    if len(own) != 1:
        return ""
    other = next((one for one in (8, 10) if one % named[own[0]]), 12)
    return own[0] if not (is_called and _is_built(built, 12) and _is_built(built, other)) else ""


def _is_built(built: Construction, width: int) -> bool:
    try:
        with undisturbed():
            built(SIZES.but(d_model=width))
    except Exception:  # code that a user wrote may raise anything
        return False
    return True


def _is_said(one: Filling, built: Construction | None) -> bool:
    """Say whether arguments say the size that a constant is."""
    if built is None:
        return False
    if _is_head_width(one):
        return any(map(_is_head_width, built.fillings.values())) or built.known >= _SPLIT
    return bool(one.settles) and one.settles <= built.known


def read_by(read: Callable[[C, Reading], R], code: C, reading: Reading) -> R:
    """Return what `read` makes of `code`, with constants as they are where only that fits."""
    try:
        return read(code, reading)
    except Unclear as failure:
        if isinstance(failure, Uncallable):
            with suppress(Unclear):
                if (other := code.with_constants_of_parts(reading)) is not None:
                    return read(other, reading)
        plain = code.as_written()
        if plain is None or (_is_inner(code) and isinstance(failure, Contrary)):
            raise  # a part that is called without its class does not show what a mask means
        with suppress(Unclear):
            found = read(plain, reading)
            if getattr(found, "fits", False):
                return found
        if isinstance(failure, Uncovered) or words(code.constants) in str(failure):
            raise
        raise Unclear(
            f"{failure} Constants of its code were taken for sizes ({words(code.constants)}): "
            f"--give NAME=VALUE leaves one as it is."
        ) from failure


def _is_inner(code: object) -> bool:
    """Say whether `code` is what a class calls, with the masks that the class makes."""
    return getattr(code, "otherwise", None) is not None


def question(code: WithConstants, is_known_mistake: bool) -> str:
    """Return the question where constants are sizes, and no choice gives the numbers of `code`.

    There is none where a known mistake gives them, as the constants are right then.
    """
    if is_known_mistake or not any(one.code for one in code.constants.values()):
        return ""  # as well where all are left as they are
    return (
        f"{code.name} reads constants of the code as sizes, and was judged in copies of its files "
        f"that have others in their place ({words(code.constants)}). No choice gives its numbers: "
        f"that is a mistake in it, or a constant means something else. Say which is which with "
        f"--argument SIZE=NAME, leave one as it is with --give NAME=VALUE, make them arguments, or "
        f"judge it with --anyway."
    )


def assumed(constants: Mapping[str, Filling]) -> list[str]:
    """Return what is assumed of `constants`, nothing where there are none."""
    return [ASSUMED.format(words(constants))] if constants else []


def words(constants: Mapping[str, Filling]) -> str:
    """Return which constant is which size, in one phrase."""
    return ", ".join(f"{own}={one.words}" for own, one in constants.items())


def _fillings(
    read: Mapping[str, float], component: str, reading: Reading, others: Sequence[str] = ()
) -> dict[str, Filling]:
    """Return the size that each of the numbers `read`, beside the `others`, is if it is one."""
    found = {}
    for own, value in read.items():
        one = _filling(own, value, component, reading, [*read, *others])
        if one is not None and own.isidentifier() and not iskeyword(own):
            found[own] = one
    return found


def _filling(
    own: str, value: float, component: str, reading: Reading, held: Collection[str]
) -> Filling | None:
    parameter = inspect.Parameter(own, inspect.Parameter.KEYWORD_ONLY)
    found = filling_of(own, parameter, component, replace(reading, given={}), held)
    if found is None or not found.code:
        size = size_by_words(squashed(own), "")
        found = (
            Filling(size, attrgetter(size), frozenset([size]), f"sizes.{size}") if size else None
        )
    if found is None or own.startswith("_") or any("_pad" in one for one in found.settles):
        return None
    is_rate = found.settles == {"dropout"}
    fits = (
        isinstance(value, float) and 0 <= value < 1 if is_rate else type(value) is int and value > 1
    )
    return found if fits else None


def _is_head_width(one: Filling) -> bool:
    return one.value is head_width


def _demand_constant_sizes(
    thing: Callable[..., Any], found: Mapping[str, Filling], built: Construction | None
) -> None:
    """Raise Unclear where the width of a head is a constant, and what it follows from is none."""
    known = _SPLIT & (built.known if built is not None else frozenset())
    for own in (own for own, one in found.items() if _is_head_width(one) and known):
        raise Unclear(
            f"{thing.__name__} is built with {' and '.join(known)}, and reads {own} of its code as "
            f"the width of a head, which is right for one of them alone. Compute it of these, make "
            f"it an argument, or leave it as it is with --give {own}=VALUE."
        )


def _demand_agreement(
    thing: Callable[..., Any], numbers: Mapping[str, float], component: str, reading: Reading
) -> None:
    """Raise Unclear where the constants of the file give a head two widths."""
    sizes = {
        own: HEAD_WIDTH_CODE if _is_head_width(one) else one.code
        for own, one in _fillings(numbers, component, reading).items()
        if own not in reading.given
    }
    if said := contradiction(numbers, sizes):
        raise Unclear(f"{thing.__name__} {said}")


def _demand_copies(thing: Callable[..., Any], constants: Mapping[str, Filling]) -> None:
    """Raise Unclear where a copy of the files cannot be made, or not in a time for many."""
    start, failure = time.process_time(), ""
    try:
        with undisturbed():
            copied_at(thing, constants, SIZES)
    except Exception as raised:  # code that a user wrote may raise anything
        failure = summary(raised, 120)
    if failure or time.process_time() - start > SECONDS:
        raise Unclear(
            f"{thing.__name__} reads constants of the code as sizes ({words(constants)}), and its "
            f"file cannot be run again with others: {failure or 'that takes too long'}. Move what "
            f"it defines into a file of its own, or make them arguments."
        )
