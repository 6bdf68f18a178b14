"""Construction of a whole model: an expression of the sizes for every argument of its constructor.

Names decide; what they leave open is tried, and the shapes of the parameters say what fits.
"""

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice, product
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.components import component_named, part_named, squashed
from attentest.targets.adapt.fillings import is_head_width, is_no_number
from attentest.targets.adapt.names import (
    HEAD_WIDTH,
    ON,
    RATIO,
    REQUIRED,
    SIZES,
)
from attentest.targets.adapt.objects.configuration import Fields
from attentest.targets.adapt.objects.parts import nearest_parts, takes_itself
from attentest.targets.adapt.objects.settings import (
    holds_any_field,
    is_configuration,
    is_made_of_settings,
    settings_classes,
    settings_doubts,
    settings_near,
)
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.copies import copied
from attentest.targets.constants.models import assumed_of, size_constants
from attentest.targets.constants.numbers_read import HEAD_WIDTH_CODE
from attentest.targets.language_models.construction.plain_values import words_for
from attentest.targets.language_models.construction.uses import codes_by_use
from attentest.targets.models.configurations import Configurations, called_once, usual
from attentest.targets.models.questions.unbuilt import unbuilt
from attentest.targets.models.size_names import (
    NO_TOKEN,
    is_no_size,
    is_pad_id,
    is_special_id,
    is_width,
    side_of,
    size_by_words,
    sizes_named,
)
from attentest.targets.models.tables.handed_positions import sines, table_doubts, table_given
from attentest.targets.models.tables.vocabularies import Vocabulary, with_vocabularies
from attentest.targets.models.trials import Building, around, factor_doubts, trial
from attentest.targets.signatures import constructor_arguments, is_accelerator

MOST = 200
"""Limit of the ways to build a model that are tried."""

_LOOKED_AT = 50_000
"""Limit of those that are looked at: a dozen arguments without telling names give 10^12."""

_TARGET_VOCABULARY = "sizes.target_vocabulary"
_WIDTHS = ("sizes.d_ff", "sizes.d_model")
_VOCABULARIES = ("sizes.source_vocabulary", _TARGET_VOCABULARY)
"""The sizes of what has a length, such as a map from words to ids."""


def building(thing: Callable[..., Any], name: str, reading: Reading) -> Building:
    """Return how the model that `thing` makes is built; Unclear where no way fits."""
    home = sys.modules.get(thing.__module__)
    own = {name.partition(".")[0]: thing}
    made = {one.__name__: one for one in (SimpleNamespace, Vocabulary, torch, sines)}
    space = {**made, **(vars(home) if home else {}), **own}
    if "." in name:
        space = {**made, **(dict(vars(home)) if home else {name: thing})}
    space = {**settings_near(thing), **space}
    plain: Building | str | Unclear
    try:
        plain = _fitting(_Options(space, reading, thing), thing, name)
    except Unclear as unrunnable:  # a constant may be lacking
        plain = unrunnable
    if isinstance(plain, Building) and not _CONSTANT - plain.known:
        return plain
    for values in size_constants(thing, reading, getattr(plain, "known", frozenset())):
        copies = _Options({**space, copied.__name__: copied}, reading, thing, values)
        try:
            found = _fitting(copies, thing, name)
        except Unclear as question:  # without copies, the first one says what is lacking
            raise (plain if isinstance(plain, Unclear) else question) from None
        if isinstance(found, Building):
            return dataclasses.replace(found, doubts=(*found.doubts, assumed_of(values)))
    if isinstance(plain, Building):
        return plain
    raise plain if isinstance(plain, Unclear) else Unclear(plain)


_MULTIPLE = re.compile(r"divisible|multiple|divide", re.IGNORECASE)
"""The words of a failure of code whose inner width has to be a multiple of the model's."""

_CONSTANT = {"d_model", "heads", "layers"}
"""The sizes that constants of the code are looked for where no argument is one."""


def _fitting(options: "_Options", thing: Callable[..., Any], name: str) -> Building | str:
    """Return the first way to build that fits, or the question where none does."""
    failure, first = "", None
    expressions = list(islice(options.expressions(thing, name), MOST))
    if not expressions:
        expressions = list(islice(options.made_by_itself(thing, name), MOST))
    shared = [
        one.replace(_TARGET_VOCABULARY, "sizes.source_vocabulary")
        for one in expressions[:2]
        if _TARGET_VOCABULARY in one
    ]
    tried = [*expressions, *shared]
    for expression in tried:
        built = Building(expression, options.space)
        found = trial(built, shared=expression in shared)
        if not found:
            doubts = tuple(options.doubts(expression))
            return dataclasses.replace(
                built, said=(f"built as {expression}", *doubts), doubts=doubts
            )
        first, failure = first or expression, failure or found
        if expression in expressions[:2]:
            tried += [one for one in with_vocabularies(expression, found) if one not in tried]
            if _MULTIPLE.search(found) and "sizes.d_ff" in expression:
                tried.append(expression.replace("sizes.d_ff", "4 * sizes.d_model"))
    surrounded = (around(Building(expression, options.space)) for expression in tried)
    found_around = next(filter(None, surrounded), None)  # only where no way has tables
    return found_around or options.question(thing, name, first or "", failure)


@dataclass
class _Options:
    """The expressions that arguments may get."""

    space: dict[str, Any]
    reading: Reading
    top: Any
    constants: str = ""
    switches: list[str] = dataclasses.field(default_factory=list)
    within: list[str] = dataclasses.field(default_factory=list)

    def expressions(self, thing: Callable[..., Any], name: str, side: str = "") -> Iterator[str]:
        """Yield the calls of `thing` that names allow, the likeliest first.

        `side` is "encoder" or "decoder" for what is built inside of a model.
        """
        arguments = constructor_arguments(thing)
        named = {
            own: list(islice(self._for(own, parameter, arguments, side), 8))
            or codes_by_use(thing, own, parameter)
            for own, parameter in arguments.items()
        }
        taken = " ".join(found[0] for found in named.values() if found)
        some = _SOME if "_vocabulary" in taken else (*_VOCABULARY_SIZES, *_SOME)
        unused = sorted(dict.fromkeys(some), key=lambda size: f"sizes.{size}" in taken)
        if "_vocabulary" in taken and all(f"sizes.{size}" in taken for size in _SOME[:4]):
            unused = ["max_length", *unused]  # the limit of something: it has no other shape
        rows = []
        for own, parameter in arguments.items():
            if named[own]:
                codes = list(named[own])
                optional = parameter.default is not inspect.Parameter.empty
                is_open = parameter.default is None and codes[0] in _VOCABULARIES
                if is_open or (optional and codes == [_TARGET_VOCABULARY]):
                    codes.append("")  # the sides may share a table unless it is said otherwise
                if parameter.default is None and "(" in codes[0] and part_named(own, side):
                    codes.insert(0, "")  # a part that may be left out is made by the class itself
                rows.append([(own, one) for one in codes])
            elif parameter.default is inspect.Parameter.empty and parameter.annotation is bool:
                rows.append([(own, "False"), (own, "True")])
            elif plain := words_for(own, parameter, thing, self.space):
                self.switches += [f"{own}={one}" for one in plain]
                rows.append([(own, one) for one in plain])
            elif parameter.default is inspect.Parameter.empty and is_no_size(own, parameter):
                return  # no number can be given for a part, nor for the name of a file
            elif parameter.default is inspect.Parameter.empty:
                held = [(own, f"range({one})") for one in _VOCABULARIES if one not in taken]
                rows.append([(own, f"sizes.{size}") for size in unused] + held)
            elif is_width(parameter.default) and (free := [w for w in _WIDTHS if w not in taken]):
                rows.append([*((own, one) for one in free), (own, "")])
            elif is_width(parameter.default) and _VOCABULARIES[0] not in taken:
                rows.append([(own, ""), *((own, one) for one in _VOCABULARIES)])
        unnamed = {own for own in arguments if not named[own]}
        for chosen in islice(product(*rows), _LOOKED_AT):
            guesses = [code for own, code in chosen if own in unnamed and "sizes." in code]
            guesses = [one for one in guesses if one != "sizes.max_length"]  # two may be limits
            if len(set(guesses)) < len(guesses):
                continue  # two arguments without telling names are two sizes
            given = [f"{own}={code}" for own, code in chosen if code]
            yield f"{self._called(name)}({', '.join(given)})"

    def _called(self, name: str) -> str:
        """Return the expression of what is called: a copy of it, where constants are sizes."""
        if not self.constants:
            return name
        top, dot, rest = name.partition(".")
        return f"{copied.__name__}({top}, {self.constants}){dot}{rest}"

    def made_by_itself(self, thing: Callable[..., Any], name: str) -> Iterator[str]:
        """Yield the calls of the methods by which the class `thing` makes its own instances."""
        methods = vars(thing) if inspect.isclass(thing) else {}
        for own, method in methods.items():
            if isinstance(method, classmethod | staticmethod) and not own.startswith("_"):
                yield from self.expressions(getattr(thing, own), f"{name}.{own}")

    def _for(
        self,
        own: str,
        parameter: inspect.Parameter,
        arguments: Mapping[str, inspect.Parameter],
        side: str,
    ) -> Iterator[str]:
        name = squashed(own)
        size = next((size for size, one in self.reading.arguments.items() if one == own), "")
        if own in self.reading.given:
            yield repr(self.reading.given[own])
            return
        if size in SIZES:
            yield f"sizes.{size}"
            return
        if table := table_given(own, self.top, parameter.default):
            yield table
            return
        if parameter.annotation is nn.Embedding and not ("pos" in name and not parameter.default):
            yield f"torch.nn.Embedding(sizes.{side_of(name, side)}_vocabulary, sizes.d_model)"
            return
        inner = self._inner(own, parameter, side)
        made = self._made(*inner) if inner else []
        yield from made
        is_settings = is_configuration(own, self.top)
        if made and not (is_settings and not any("sizes." in one for one in made)):
            return  # a class of settings that takes no size is one of constants
        if is_settings and parameter.default in (inspect.Parameter.empty, None):
            yield from self._configurations(own, arguments)
            return
        default = parameter.default
        if name == "device" and (default is parameter.empty or is_accelerator(name, default)):
            yield '"cpu"'
            return
        if is_no_number(parameter.default) and not is_pad_id(name, parameter.default):
            return
        if name in ON:
            yield repr(ON[name])
        elif name in REQUIRED and default is inspect.Parameter.empty:
            yield repr(REQUIRED[name])
        elif is_special_id(name):
            yield NO_TOKEN
        elif name in HEAD_WIDTH or is_head_width(name, parameter.default, arguments):
            yield HEAD_WIDTH_CODE
        elif name in RATIO:
            yield from ("4", "sizes.d_ff")  # it may be handed on as the inner width itself
        else:
            yield from self._sizes(name, [squashed(one) for one in arguments], side)

    def _sizes(self, name: str, held: Collection[str], side: str) -> Iterator[str]:
        """Yield the expressions of the sizes that `name` may be, beside the arguments `held`."""
        found = list(sizes_named(name, held, side)) or [size_by_words(name, side)]
        yield from (f"sizes.{size}" for size in found if size)

    def _made(self, name: str, side: str) -> list[str]:
        """Return the calls that make a value of the class `name`: none makes one of its own."""
        if name in self.within:
            return []
        self.within.append(name)
        found = list(islice(self.expressions(self.space[name], name, side), 8))
        self.within.remove(name)
        return found

    def _inner(self, own: str, parameter: inspect.Parameter, side: str) -> tuple[str, ...]:
        """Return the class that makes the value of `own`, and its side; () for a plain value."""
        if parameter.annotation in _PLAIN:
            return ()
        classes = {
            name: one
            for name, one in self.space.items()
            if inspect.isclass(one) and one is not self.top and not name.startswith("_")
            if not holds_any_field(one, self.top)
        }
        annotated = [name for name, one in classes.items() if one is parameter.annotation]
        if annotated and not issubclass(classes[annotated[0]], nn.Module | Enum | Mapping):
            return () if is_made_of_settings(classes[annotated[0]]) else (annotated[0], side)
        if is_configuration(own, self.top):
            held = [name for name in classes if squashed(name).endswith(("config", "cfg", "args"))]
            if len(held) != 1:
                held = [one.__name__ for one in settings_classes(self.top, own)]
            return (held[0], side) if len(held) == 1 and held[0] in self.space else ()
        wanted = part_named(own, side)
        made = [
            name
            for name, one in classes.items()
            if issubclass(one, nn.Module) and wanted and component_named(name) == wanted
            if not takes_itself(one, own)
        ]
        if not made and wanted in ("encoder", "decoder"):  # of another file, which imports nothing
            near = nearest_parts(self.top, "model", own)
            made = [one.__name__ for one in near if self.space.setdefault(one.__name__, one) is one]
            made = made if len(near) == 1 else []
        return (made[0], wanted if wanted in ("encoder", "decoder") else side) if made else ()

    def _configurations(
        self, own: str, arguments: Mapping[str, inspect.Parameter]
    ) -> Iterator[str]:
        """Yield the configurations with the fields that the constructor reads."""

        def fill(name: str, known: Mapping[str, str]) -> str | None:
            if name in self.reading.given:
                return repr(self.reading.given[name])
            size = next((size for size, one in self.reading.arguments.items() if one == name), "")
            if size in SIZES:
                return f"sizes.{size}"
            if squashed(name) in HEAD_WIDTH:
                return HEAD_WIDTH_CODE
            held = [squashed(one) for one in (name, *known)]
            return next(self._sizes(squashed(name), held, ""), None) or usual(name)

        one_vocabulary = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
        try:
            beside = self._beside(own, arguments, fill, {**self.space, "sizes": one_vocabulary})
        except Exception:  # an object that an argument gets may not be made of sizes
            return
        made = Configurations(
            lambda config: called_once(self.top(**{**beside, own: config})),
            fill,
            lambda code: eval(code, {"sizes": one_vocabulary}),
            self.switches,
        )
        with undisturbed():
            yield from made.expressions()

    def _beside(
        self,
        own: str,
        arguments: Mapping[str, inspect.Parameter],
        fill: Callable[[str, Mapping[str, str]], str | None],
        space: dict[str, Any],
    ) -> dict[str, Any]:
        """Return what the arguments get while the fields of the configuration `own` are read.

        Configurations before it are made first; those behind it have the fields that names say.
        """
        beside: dict[str, Any] = {}
        order = list(arguments)
        for other, one in arguments.items():
            if other == own:
                continue
            code = next(self._for(other, one, {other: one}, ""), "")
            if is_configuration(other, self.top) and one.default is inspect.Parameter.empty:
                if order.index(other) > order.index(own):
                    beside[other] = Fields(
                        lambda name: fill(name, {}), lambda code: eval(code, space)
                    )
                    continue
                if not code or "sizes." not in code:
                    code = next(self._configurations(other, arguments), "")
            with undisturbed():
                beside |= {other: eval(code, space)} if code else {}
        return beside

    def doubts(self, expression: str) -> Iterator[str]:
        """Yield the switches that nothing says, as `expression` sets them, and its settings."""
        yield from settings_doubts(self.top, expression)
        yield from (*factor_doubts(expression), *table_doubts(expression))
        for one in dict.fromkeys(self.switches):
            if re.search(rf"[( ]{re.escape(one)}[,)]", expression):
                yield f"assumed {one}, of which nothing says what is meant: --give sets it"

    def question(self, thing: Any, name: str, first: str, failure: str) -> str:
        """Return the question where nothing fits."""
        arguments = constructor_arguments(thing)
        unknown = [
            own
            for own, one in arguments.items()
            if one.default is inspect.Parameter.empty
            and not list(islice(self._for(own, one, arguments, ""), 1))
        ]
        return unbuilt(thing, name, unknown, first, failure)


_PLAIN = (int, float, bool, str, "int", "float", "bool", "str")
"""The annotations of what is no part, as in `embedding: int = 128`, a width."""
_VOCABULARY_SIZES = ("source_vocabulary", "target_vocabulary")
_SOME = ("d_model", "heads", "layers", "d_ff", "max_length", *_VOCABULARY_SIZES, "dropout")
