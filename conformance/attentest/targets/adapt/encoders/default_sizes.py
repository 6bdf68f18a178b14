"""Sizes of an encoder whose arguments have a default, and names that do not say which they are."""

import inspect
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.sizes.objects import with_vectors, with_vocabulary
from attentest.targets.adapt.encoders.sizes.traces import leaves_no_trace
from attentest.targets.adapt.fillings import SOME_CLASSES, Filling
from attentest.targets.adapt.names import WIDTH
from attentest.targets.adapt.objects.compared_words import worded
from attentest.targets.adapt.objects.literals import literals_near
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.adapt.wrappers.head_matrices import with_own_heads
from attentest.targets.constants.components import constants_of, varied
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Sizes

_NEEDED = ("d_model", "heads", "layers")
_MOST = 6
"""The largest number of arguments that may be the size which no name says."""


def built_of(thing: Any, component: str, reading: Reading) -> Construction:
    """Return how `thing` is built, with values that the files of its project give by their names.

    What else nothing says may be numbers that no layer has, or the rows of the table of tokens.
    Unclear is raised where nothing says what an argument is, or a strict reading assumes none.
    """
    said: dict[str, Any] = {}
    off: dict[str, Any] = {}
    numbers: dict[str, Unclear] = {}
    while True:
        given = {**reading.given, **said, **off, **dict.fromkeys(numbers, SOME_CLASSES)}
        asked = replace(reading, given=given)
        try:
            built = _built_of(thing, component, asked)
        except Unclear as question:
            unknown = {own for one in question.attempts for own in one.given} - given.keys()
            if reading.strict or not unknown or len(given) > _MOST:
                raise next(iter(numbers.values()), question) from question
            found = literals_near(thing, unknown)
            switches = {one for one in unknown if _OF_DECODERS.fullmatch(squashed(one))}
            if found and all(type(one) in (bool, str) for one in found.values()):
                said |= found
            elif switches and component == "encoder":
                off |= dict.fromkeys(sorted(switches), False)
            elif any(map(_is_of_ones, question.attempts)):
                numbers |= dict.fromkeys(sorted(unknown), question)
            else:
                raise next(iter(numbers.values()), question) from question
            continue
        for own, open_ in numbers.items():
            built, asked = _numbered(thing, component, asked, own, built, open_)
        return _remarked(_remarked(built, said, _SAID), off, _OFF)


_OF_DECODERS = re.compile(
    r"(is|use|with)?(gpt|decoder|causal|autoregressive|flash(attn|attention)?|sdpa)(attn|attention)?"
)
"""Switches of a constructor that make a decoder of an encoder, or its attention another way."""
_OFF = "assumed that {}, as it is judged as an encoder and nothing else says it"


def _remarked(built: Construction, said: Mapping[str, Any], sentence: str) -> Construction:
    words = " and ".join(f"{own} is {value!r}" for own, value in said.items())
    remarks = filter(None, (built.remark, sentence.format(words) if words else ""))
    return replace(built, remark="; ".join(remarks))


_SAID = "assumed that {}, as a file of its project has it and nothing else says it"


def _numbered(
    thing: Any, component: str, reading: Reading, own: str, built: Construction, question: Unclear
) -> tuple[Construction, Reading]:
    """Return `thing`, `built` with a small number for `own`, with what that is, and its reading.

    Raises the `question` about it where it is neither rows of the table of tokens nor a number that
    no layer has, and no file of the project has a number for it.
    """
    rest = {name: one for name, one in reading.given.items() if name != own}
    arguments = {**reading.arguments, _VOCABULARY: own}
    as_rows = replace(reading, arguments=arguments, given=rest)
    if _VOCABULARY not in built.known and _has_table(thing, component, as_rows):
        read, words = as_rows, _IS_VOCABULARY.format(own)
    elif moves := _is_of_no_layer(thing, component, reading, own):
        number = {own: reading.given[own] if moves == "shapes" else _OF_NO_TOKEN}
        read, words = replace(reading, given=rest | number), _COLUMNS.format(own)
    elif found := literals_near(thing, [own]):
        read, words = replace(reading, given=rest | found), _SAID.format(f"{own} is {found[own]!r}")
    else:
        raise question
    made = _built_of(thing, component, read)
    return replace(made, remark="; ".join(filter(None, (built.remark, words)))), read


def _built_of(thing: Any, component: str, reading: Reading) -> Construction:
    """Return how `thing` is built, with words for its texts that nothing says: those of its code.

    Without such words, or where a strict reading assumes none, Unclear is raised for such a text.
    """
    try:
        found = buildable(varied(thing, component, reading))
        return found if reading.strict else with_own_heads(_with_rows_of_inputs(found))
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
            if _is_built(vectors := with_vectors(built, attempt.given)):
                return vectors
        raise


_INPUTS = re.compile(r"(in|input|src)(dim|dims|size|width|features|channels)|ninp?(ut)?s?")
"""Names of a width of inputs, which may be the number of their ids."""


def _with_rows_of_inputs(built: Construction) -> Construction:
    """Return `built` with the vocabulary for one of its widths, where a table has so many rows."""
    widths = [own for own, one in built.fillings.items() if one.settles == {"d_model"} and one.code]
    named = [own for own in widths if _INPUTS.fullmatch(squashed(own))]
    if len(named) != 1 or len(widths) < 2 or _VOCABULARY in built.known:
        return built
    size, code = frozenset([_VOCABULARY]), f"sizes.{_VOCABULARY}"
    filling = Filling(_VOCABULARY, attrgetter(_VOCABULARY), size, code)
    made = replace(built, fillings={**built.fillings, named[0]: filling})
    try:
        with undisturbed():
            tables = [one for one in made(DISTINCT).modules() if isinstance(one, nn.Embedding)]
    except Exception:  # code that a user wrote may raise anything
        return built
    rows = DISTINCT.source_vocabulary, DISTINCT.d_model
    if not any((one.num_embeddings, one.embedding_dim) == rows for one in tables):
        return built
    words = _IS_VOCABULARY.format(named[0])
    return replace(made, remark="; ".join(filter(None, (built.remark, words))))


_VOCABULARY = "source_vocabulary"
_IS_VOCABULARY = "assumed that {} is the size of the vocabulary: a table has so many rows"
_ROWS_MORE = 3


def _has_table(thing: Any, component: str, reading: Reading) -> bool:
    """Say whether a table has the rows of the vocabulary, or some more, as wide as the model."""
    rows = range(DISTINCT.source_vocabulary, DISTINCT.source_vocabulary + _ROWS_MORE + 1)
    try:
        with undisturbed():
            shapes = _shapes(_built_of(thing, component, reading)(DISTINCT))
    except Exception:  # code that a user wrote may raise anything
        return False
    return any((one, DISTINCT.d_model) in shapes for one in rows)


_COLUMNS = "assumed that {} is a number that no layer has: it is built with a small one"


_VECTORS = re.compile(r".*(embed|emb|vector|weight|matrix|pretrain|glove|w2v|word2vec).*")
_NO_VECTORS = "assumed that {} holds numbers of another run: it is built without them, with None"


def _is_of_no_vectors(attempt: Attempt) -> bool:
    """Say whether an attempt gives None for what holds vectors of words, by its name."""
    given = attempt.given.items()
    is_none = all(one is None and _VECTORS.match(squashed(own)) for own, one in given)
    return bool(given) and is_none and not attempt.component and not attempt.arguments


def _is_of_ones(attempt: Attempt) -> bool:
    """Say whether an attempt gives 1 for all that nothing says."""
    given = attempt.given.values()
    return bool(given) and all(one == 1 and type(one) is int for one in given)


_OF_NO_TOKEN = 2
"""A number that no token has with which code is probed: it may be the id of one."""


def _is_of_no_layer(thing: Any, component: str, reading: Reading, own: str) -> str:
    """Return "shapes" where the argument `own` is a number that changes shapes, none of a layer.

    It changes those of no more parameters where there are more layers, and not how many parameters
    there are. Where the number of layers is fixed, it may not be an inner width. "nothing" is
    returned for one that changes no shape and that no layer holds, and "" for all others.
    """
    deeper = DISTINCT.but(layers=DISTINCT.layers + 1)
    pairs = []
    try:
        with undisturbed():
            made = _built_of(thing, component, reading)
            given = {**reading.given, own: reading.given[own] + 2}
            other = _built_of(thing, component, replace(reading, given=given))
            for sizes in (DISTINCT, deeper):
                both = _shapes(made(sizes)), _shapes(other(sizes))
                pairs.append(list(zip(*both, strict=True)))
    except Exception:  # code that a user wrote may raise anything
        return ""
    moved = [[two for two in one if two[0] != two[1]] for one in pairs]
    is_fixed = len(pairs[0]) == len(pairs[1])
    is_inner = any(one[1:] != two[1:] for one, two in moved[0])
    if not moved[0] and not moved[1]:
        idle = made.known >= {*_NEEDED} and leaves_no_trace(made, other, DISTINCT)
        return "nothing" if idle and not _is_switch(thing, component, reading, own) else ""
    return "shapes" * (0 < len(moved[0]) == len(moved[1]) and not (is_fixed and is_inner))


def _is_switch(thing: Any, component: str, reading: Reading, own: str) -> bool:
    """Say whether there are other parameters where the argument `own` is False, or no module."""
    off = replace(reading, given={**reading.given, own: False})
    try:
        with undisturbed():
            made, other = (_built_of(thing, component, one) for one in (reading, off))
            return _shapes(made(DISTINCT)) != _shapes(other(DISTINCT))
    except Exception:  # code that a user wrote may raise anything
        return True


def _shapes(module: Any) -> list[tuple[int, ...]]:
    return [tuple(one.shape) for one in module.parameters()]


def _is_of_words(attempt: Attempt) -> bool:
    given = attempt.given.values()
    return bool(given) and all(isinstance(one, str) for one in given) and not attempt.component


def _is_built(built: Construction, sizes: Sizes = DISTINCT) -> bool:
    try:
        built(sizes)
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
    return built.with_constants({**built.constants, **found}) if found else None


def buildable(built: Construction) -> Construction:
    """Return `built`, with a whole ratio of widths, or a number of classes, where it needs one.

    So it is with the pad id 0 where a table has too few rows for another one.
    """
    for one in (built, built.with_classes()):
        if _is_built(one):
            zero = one if _is_built(one, DISTINCT.but(source_pad=_PAD)) else one.with_pad(0)
            if zero is one or not _is_built(zero, DISTINCT.but(source_pad=_PAD)):
                return one
            return replace(zero, remark="; ".join(filter(None, (one.remark, _ZERO))))
    objects = filter(_is_built, with_vocabulary(built))
    return next(objects, built.with_whole_ratio())


_PAD = 7
_ZERO = "assumed that the pad id is 0: another one is refused where it is built"


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
