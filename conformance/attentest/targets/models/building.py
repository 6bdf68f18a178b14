"""Construction of a whole model: an expression of the sizes for every argument of its constructor.

Names decide; what they leave open is tried, and the shapes of the parameters say what fits.
"""

import dataclasses
import inspect
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, product
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from attentest.results.text import summary
from attentest.targets.adapt.components import component_named, part_named, squashed
from attentest.targets.adapt.fillings import filling_of, is_no_number
from attentest.targets.adapt.names import (
    CONFIGURATION,
    EPSILON,
    HEAD_WIDTH,
    ON,
    RATIO,
    SIZES,
)
from attentest.targets.adapt.parameters.found import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.configurations import Configurations
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.models.surrounded import Surrounded, surrounded
from attentest.targets.signatures import sizes_in
from attentest_spec import Sizes, Unsupported

MOST = 200
"""Limit of the ways to build a model that are tried."""

_HEAD_WIDTH = "sizes.d_model // sizes.heads"
_TARGET_VOCABULARY = "sizes.target_vocabulary"
_VOCABULARIES = ("sizes.source_vocabulary", _TARGET_VOCABULARY)
"""The sizes of what has a length, such as a map from words to ids."""


@dataclass(frozen=True)
class Building:
    """A model that is built by the `expression` of the name `sizes`, evaluated in `space`.

    `known` are the sizes that occur in it, `said` sentences for the user, and `doubts` those that
    may be wrong.
    """

    expression: str
    space: Mapping[str, Any]
    said: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()

    def __call__(self, sizes: Sizes) -> Any:
        """Build at `sizes`; what is shared by both sides cannot have two values."""
        if "target_vocabulary" not in self.known and (
            sizes.source_vocabulary != sizes.target_vocabulary
        ):
            raise ValueError(
                f"one vocabulary serves both sides: {sizes.source_vocabulary} and "
                f"{sizes.target_vocabulary} differ"
            )
        if self.is_split and sizes.heads > 0 and sizes.d_model % sizes.heads:
            raise Unsupported(
                f"it is built with the width of a head, and {sizes.d_model} features are no "
                f"multiple of {sizes.heads}"
            )
        return eval(self.expression, {**self.space, "sizes": sizes})

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with."""
        return sizes_in(self.expression)

    @property
    def is_split(self) -> bool:
        """Whether it is given the width of a head, which the adapter computes."""
        return _HEAD_WIDTH in self.expression


def building(thing: Callable[..., Any], name: str, reading: Reading) -> Building:
    """Return how the model that `thing` makes is built; Unclear where no way fits."""
    home = sys.modules.get(thing.__module__)
    own = {name.partition(".")[0]: thing}
    space = {"SimpleNamespace": SimpleNamespace, **(vars(home) if home else {}), **own}
    if "." in name:
        space = dict(vars(home)) if home else {name: thing}
    options = _Options(space, reading, thing)
    failure, first = "", None
    expressions = list(islice(options.expressions(thing, name), MOST))
    if not expressions:
        expressions = list(islice(options.made_by_itself(thing, name), MOST))
    shared = [
        one.replace(_TARGET_VOCABULARY, "sizes.source_vocabulary")
        for one in expressions[:2]
        if _TARGET_VOCABULARY in one
    ]
    for expression in [*expressions, *shared]:
        built = Building(expression, space)
        found = _trial(built, shared=expression in shared)
        if not found:
            doubts = tuple(options.doubts(expression))
            return dataclasses.replace(
                built, said=(f"built as {expression}", *doubts), doubts=doubts
            )
        if around := _around(built):
            return around
        first = first or expression
        failure = failure or found
    raise Unclear(options.question(thing, name, first or "", failure))


def _trial(built: Building, *, shared: bool = False) -> str:
    """Return why `built` cannot be what is meant, "" where it can.

    A `shared` vocabulary, where the arguments are two, needs a table that is shared.
    """
    sizes = DISTINCT
    if "target_vocabulary" not in built.known:
        sizes = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
    try:
        with undisturbed():
            module = built(sizes)
    except Exception as failure:  # code that a user wrote may raise anything
        return summary(failure, 160)
    if not isinstance(module, nn.Module):
        return f"it makes a {type(module).__name__}, and no torch.nn.Module"
    tables = [one.weight for one in module.modules() if isinstance(one, nn.Embedding)]
    for rows, width in (one.shape for one in tables):
        if width == sizes.heads:
            return (
                f"it holds a table of {rows} rows with a number for each head, as relative "
                f"positions have, and the spec has no place for those"
            )
        if width != sizes.d_model:
            return "it holds a table of another width than the model's"
    held = module.named_parameters(remove_duplicate=False)  # a layer may be in a list twice
    if (
        shared
        and len({one.data_ptr() for one in tables if len(one) == sizes.source_vocabulary}) != 1
    ):
        return "its sides do not share a table, and it is built with one vocabulary for both"
    shapes = [set(one.shape) for _, one in held if one.dim() > 1]
    for vocabulary in (sizes.source_vocabulary, sizes.target_vocabulary):
        if {vocabulary, sizes.d_model} not in shapes:
            return f"it holds no table of {vocabulary} tokens by {sizes.d_model}"
    wide = sum(sizes.d_ff in one for one in shapes)
    if "d_ff" in built.known and wide != 4 * sizes.layers:
        return f"it holds {wide} matrices of the inner width, and not {4 * sizes.layers}"
    return ""


def _around(built: Building) -> Building | None:
    """Return stacks that take vectors between tables and a generator; None for all else."""
    try:
        with undisturbed():
            core = built(DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
        own = list(core.modules())
    except Exception:  # code that a user wrote may raise anything
        return None
    if {"d_model", "heads", "layers"} - built.known or any(
        isinstance(one, nn.Embedding) for one in own
    ):
        return None
    expression = surrounded(built.expression, core)
    found = Building(expression, {**built.space, "Surrounded": Surrounded})
    if not expression or _trial(found):
        return None
    said = (
        f"built as {built.expression}",
        "it takes vectors: tables of tokens and a generator of the adapter's are put around it, "
        "and nothing is said of embeddings, positions and generators",
    )
    return dataclasses.replace(found, said=said)


@dataclass
class _Options:
    """The expressions that arguments may get."""

    space: Mapping[str, Any]
    reading: Reading
    top: Any
    switches: list[str] = dataclasses.field(default_factory=list)

    def expressions(self, thing: Callable[..., Any], name: str, side: str = "") -> Iterator[str]:
        """Yield the calls of `thing` that names allow, the likeliest first.

        `side` is "encoder" or "decoder" for what is built inside of a model.
        """
        arguments = _arguments(thing)
        named = {
            own: list(islice(self._for(own, parameter, arguments, side), 8))
            for own, parameter in arguments.items()
        }
        taken = " ".join(found[0] for found in named.values() if found)
        unused = sorted(_SOME, key=lambda size: f"sizes.{size}" in taken)
        rows = []
        for own, parameter in arguments.items():
            if named[own]:
                codes = list(named[own])
                optional = parameter.default is not inspect.Parameter.empty
                if optional and codes == ["sizes.target_vocabulary"]:
                    codes.append("")  # the sides may share a table unless it is said otherwise
                if parameter.default is None and "(" in codes[0] and part_named(own, side):
                    codes.insert(0, "")  # a part that may be left out is made by the class itself
                rows.append([(own, one) for one in codes])
            elif parameter.default is inspect.Parameter.empty and parameter.annotation is bool:
                rows.append([(own, "False"), (own, "True")])
            elif parameter.default is inspect.Parameter.empty and _is_part(parameter.annotation):
                return  # no number can be given for a part
            elif parameter.default is inspect.Parameter.empty:
                held = [(own, f"range({one})") for one in _VOCABULARIES if one not in taken]
                rows.append([(own, f"sizes.{size}") for size in unused] + held)
            elif _is_width(parameter.default) and "sizes.d_ff" not in taken:
                rows.append([(own, "sizes.d_ff"), (own, "")])
        for chosen in product(*rows):
            given = [f"{own}={code}" for own, code in chosen if code]
            yield f"{name}({', '.join(given)})"

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
        inner = self._inner(own, parameter, side)
        if inner:
            yield from self.expressions(self.space[inner[0]], *inner)
            return
        if name in CONFIGURATION and parameter.default in (inspect.Parameter.empty, None):
            yield from self._configurations(own, arguments)
            return
        if name == "device" and parameter.default is inspect.Parameter.empty:
            yield '"cpu"'
            return
        if is_no_number(parameter.default):
            return
        if name in ON:
            yield "True"
        if name in HEAD_WIDTH:
            yield _HEAD_WIDTH
        elif name in RATIO:
            yield "4"
        else:
            yield from self._sizes(name, [squashed(one) for one in arguments], side)

    def _sizes(self, name: str, held: Collection[str], side: str) -> Iterator[str]:
        """Yield the expressions of the sizes that `name` may be, beside the arguments `held`."""
        found = list(sizes_named(name, held, side)) or [size_by_words(name, side)]
        yield from (f"sizes.{size}" for size in found if size)

    def _inner(self, own: str, parameter: inspect.Parameter, side: str) -> tuple[str, ...]:
        """Return the class that makes the value of `own`, and its side; () for a plain value."""
        classes = {
            name: one
            for name, one in self.space.items()
            if inspect.isclass(one) and one is not self.top and not name.startswith("_")
            if one is not SimpleNamespace
        }
        annotated = [name for name, one in classes.items() if one is parameter.annotation]
        if annotated and not issubclass(classes[annotated[0]], nn.Module):
            return annotated[0], side
        if squashed(own) in ("config", "cfg", "conf", "args", "hparams", "configuration"):
            held = [name for name in classes if squashed(name).endswith(("config", "cfg", "args"))]
            return (held[0], side) if len(held) == 1 else ()
        wanted = part_named(own, side)
        made = [
            name
            for name, one in classes.items()
            if issubclass(one, nn.Module) and wanted and component_named(name) == wanted
        ]
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
                return _HEAD_WIDTH
            held = [squashed(one) for one in (name, *known)]
            return next(self._sizes(squashed(name), held, ""), None) or _usual(name)

        one_vocabulary = DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)
        beside = {
            other: eval(code, {"sizes": one_vocabulary})
            for other, one in arguments.items()
            if other != own
            for code in islice(self._for(other, one, {other: one}, ""), 1)
        }
        made = Configurations(
            lambda config: _called_once(self.top(**{**beside, own: config})),
            fill,
            lambda code: eval(code, {"sizes": one_vocabulary}),
            self.switches,
        )
        with undisturbed():
            yield from made.expressions()

    def doubts(self, expression: str) -> Iterator[str]:
        """Yield the switches that nothing says, as `expression` sets them."""
        for one in dict.fromkeys(self.switches):
            if f"({one}" in expression or f" {one}" in expression:
                yield f"assumed {one}, of which nothing says what is meant: --give sets it"

    def question(self, thing: Any, name: str, first: str, failure: str) -> str:
        """Return the question where nothing fits."""
        unknown = [
            own
            for own, one in _arguments(thing).items()
            if one.default is inspect.Parameter.empty
            and not list(islice(self._for(own, one, _arguments(thing), ""), 1))
        ]
        open_words = f" Nothing says what {' and '.join(unknown)} is." if unknown else ""
        tried = f" Built as {first}: {failure}." if first else ""
        return (
            f"{name} could not be built as a whole model.{open_words}{tried} Say what an argument "
            f"is with --argument SIZE=NAME ({', '.join(SIZES)}), or fix one with "
            f"--give NAME=VALUE (in Python: arguments={{SIZE: NAME}}, given={{NAME: VALUE}}); "
            f"--as encoder judges its encoder alone. A function that builds the model is a target "
            f"too: FILE.py:NAME."
        )


_SOME = (
    "d_model",
    "heads",
    "layers",
    "d_ff",
    "max_length",
    "source_vocabulary",
    "target_vocabulary",
    "dropout",
)


def _arguments(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        signature = inspect.signature(thing, eval_str=True)
    except (NameError, TypeError):
        signature = inspect.signature(thing)
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {one.name: one for one in signature.parameters.values() if one.kind not in loose}


def _called_once(model: Any) -> None:
    """Call `model` with token ids: some fields of a configuration are read in the call alone."""
    taken = inspect.signature(model.forward).parameters.values()
    required = [one for one in taken if one.default is inspect.Parameter.empty]
    tokens = torch.ones(2, 5, dtype=torch.int64)
    model(*[tokens for _ in required])


def _usual(name: str) -> str | None:
    """Return the expression of a setting that is no size, None for one that nothing says."""
    required = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY)
    if squashed(name) in EPSILON:
        return "1e-6"
    found = filling_of(name, required, "model", Reading(), ())
    return None if found is None or found.code else repr(found.value(DISTINCT))


def _is_part(annotation: Any) -> bool:
    """Say whether an argument is annotated as a module."""
    return inspect.isclass(annotation) and issubclass(annotation, nn.Module)


def _is_width(default: Any) -> bool:
    """Say whether a default may be that of an inner width."""
    return isinstance(default, int) and not isinstance(default, bool) and default >= 8
