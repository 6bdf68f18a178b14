"""Sizes of an encoder whose arguments have a default, and names that do not say which they are."""

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.fillings import SOME_CLASSES
from attentest.targets.adapt.names import WIDTH
from attentest.targets.adapt.objects.compared_words import worded
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
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
        nothing = (one for one in question.attempts if _is_of_no_vectors(one))
        for attempt in () if reading.strict else nothing:
            built = varied(thing, component, attempt.added(reading))
            if _is_built(built):
                return replace(built, remark=_NO_VECTORS.format(" and ".join(attempt.given)))
        for attempt in () if reading.strict else tuple(filter(_is_of_ones, question.attempts)):
            if (sized := _with_columns(thing, component, reading, [*attempt.given])) is not None:
                return replace(sized, remark=_COLUMNS.format(" and ".join(attempt.given)))
        raise


_VECTORS = re.compile(r".*(embed|emb|vector|weight|matrix|pretrain|glove|w2v|word2vec).*")
_NO_VECTORS = "assumed that {} holds numbers of another run: it is built without them, with None"


def _is_of_no_vectors(attempt: Attempt) -> bool:
    """Say whether an attempt gives None for what holds vectors of words, by its name."""
    given = attempt.given.items()
    is_none = all(one is None and _VECTORS.match(squashed(own)) for own, one in given)
    return bool(given) and is_none and not attempt.component and not attempt.arguments


_COLUMNS = "assumed that {} is a number of columns that no layer has: it is built with a small one"


def _is_of_ones(attempt: Attempt) -> bool:
    """Say whether an attempt gives 1 for all that nothing says."""
    given = attempt.given.values()
    return bool(given) and all(one == 1 and type(one) is int for one in given)


def _with_columns(
    thing: Any, component: str, reading: Reading, unknown: Sequence[str]
) -> Construction | None:
    """Return `thing` with small numbers for the `unknown` arguments, None for what is no number.

    Each has to change the shape of a parameter, and the number of parameters of none of them.
    """
    few = dict.fromkeys(unknown, SOME_CLASSES)
    try:
        with undisturbed():
            made = varied(thing, component, replace(reading, given={**reading.given, **few}))
            shapes = _shapes(made(DISTINCT))
            for own in unknown:
                more = {**reading.given, **few, own: SOME_CLASSES + 2}
                other = _shapes(varied(thing, component, replace(reading, given=more))(DISTINCT))
                if other == shapes or len(other) != len(shapes):
                    return None
    except Exception:  # code that a user wrote may raise anything
        return None
    return made


def _shapes(module: Any) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in module.parameters()]


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


_FEATURES = 7
"""The width of the vectors of an encoder that names it apart from that of its layers."""


def with_hidden_width(
    thing: Any, component: str, reading: Reading, built: Construction
) -> Iterator[Construction]:
    """Yield `built` with a width of vectors by its name, and the inner one as that of the layers.

    So `input_size, hidden_size` are meant of an encoder of series.
    """
    sizes = {own: one.settles for own, one in built.fillings.items()}
    widths = [own for own, one in sizes.items() if one == {"d_model"}]
    inner = [own for own, one in sizes.items() if one == {"d_ff"} and squashed(own) in WIDTH]
    if len(widths) != 1 or len(inner) != 1 or not _OF_VECTORS.fullmatch(squashed(widths[0])):
        return
    arguments = {**reading.arguments, "d_model": inner[0]}
    given = {**reading.given, widths[0]: _FEATURES}
    with suppress(Unclear):
        yield varied(thing, component, replace(reading, arguments=arguments, given=given))


_OF_VECTORS = re.compile(r"(n|num|d|in|input)?(in|input|feat|feature|channel)s?(dims?|size|width)?")


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


class Switched(Unclear):
    """A class that is an encoder once a switch of its constructor has a value."""


def switch_needed(thing: Any, reading: Reading) -> Switched | None:
    """Return the question about a switch that `thing` has to be given, None for no such question.

    Its attempts are those that give the switch True or False: an encoder by these alone is asked
    about, as the other value may be meant.
    """
    try:
        built_of(thing, "encoder", reading)
    except Unclear as question:
        switches = [
            replace(one, component="encoder")
            for one in question.attempts
            if one.given and all(type(value) is bool for value in one.given.values())
        ]
        parts = question.text, question.rest
        return Switched(*parts, attempts=switches, built=True) if switches else None
    except Exception:  # code that a user wrote may raise anything
        return None
    return None
