"""Sizes of an encoder whose arguments have a default, and names that do not say which they are."""

import inspect
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.objects.compared_words import worded
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.adapt.wrappers.head_matrices import with_own_heads
from attentest.targets.constants.components import constants_of, varied
from attentest.targets.signatures import constructor_arguments

_NEEDED = ("d_model", "heads", "layers")
_MOST = 6
"""The largest number of arguments that may be the size which no name says."""


def built_of(thing: Any, component: str, reading: Reading) -> Construction:
    """Return how `thing` is built, with words for its texts that nothing says: those of its code.

    Without such words, or where a strict reading assumes none, Unclear is raised for such a text.
    """
    try:
        found = buildable(varied(thing, component, reading))
        return found if reading.strict else with_own_heads(found)
    except Unclear as question:
        tried = [one for one in question.attempts if _is_of_words(one)]
        for attempt in [] if reading.strict else tried:
            built = varied(thing, component, attempt.added(reading))
            if _is_built(built):
                return replace(built, remark=built.remark or worded(attempt.given))
        raise


def _is_of_words(attempt: Attempt) -> bool:
    given = attempt.given.values()
    return bool(given) and all(isinstance(one, str) for one in given) and not attempt.component


def _is_built(built: Construction) -> bool:
    try:
        built(DISTINCT)
    except Exception:  # code that a user wrote may raise anything
        return False
    return True


def with_size_left(
    thing: Any, component: str, reading: Reading, built: Construction
) -> Iterator[Construction]:
    """Yield `built` with each argument as the one size that no argument of `thing` is by its name.

    Nothing is yielded where names say all of them, or fewer than all but one.
    """
    missing = [one for one in _NEEDED if one not in built.known]
    if len(missing) != 1:
        return
    free = [
        own
        for own, one in constructor_arguments(thing).items()
        if type(one.default) is int and one.default > 1 and own not in built.fillings
        if one.kind is not inspect.Parameter.POSITIONAL_ONLY
    ]
    for own in free if len(free) <= _MOST else ():
        arguments = {**reading.arguments, missing[0]: own}
        with suppress(Unclear):
            yield varied(thing, component, replace(reading, arguments=arguments))


def with_heads_of_code(thing: Any, reading: Reading, built: Construction) -> Construction | None:
    """Return the encoder `built` with the number of heads in its code, None where that has none.

    The width of the model that is judged need not be a multiple of it, as 8, and a call fails then.
    """
    if "heads" in built.known:
        return None
    found = constants_of(thing, "encoder", reading, built, is_called=False)
    return built.with_constants(found) if found else None


def buildable(built: Construction) -> Construction:
    """Return `built`, with a whole ratio of widths, or a number of classes, where it needs one."""
    for one in (built, built.with_classes()):
        if _is_built(one):
            return one
    return built.with_whole_ratio()
