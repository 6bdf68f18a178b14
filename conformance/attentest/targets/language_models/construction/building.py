"""Construction of a decoder-only model: an expression of the sizes for every argument.

Names decide; an argument that no name explains is tried with the sizes that are left, and the
shapes of the parameters say what fits.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations
from types import SimpleNamespace
from typing import Any

from torch import nn

from attentest.targets.adapt.components import part_named, squashed
from attentest.targets.adapt.names import HEAD_WIDTH, KEY_HEADS
from attentest.targets.adapt.objects.settings import settings_near
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.constants.copies import copied
from attentest.targets.constants.models import assumed_of, size_constants
from attentest.targets.kernels import demand_runnable
from attentest.targets.language_models.construction import parts, rounded_tables
from attentest.targets.language_models.construction.classes import (
    class_of,
    classes_of_defaults,
    has_own_settings,
    kept_of,
)
from attentest.targets.language_models.construction.failing import failure_at, question_of
from attentest.targets.language_models.construction.memos import without_memos
from attentest.targets.language_models.construction.plain_values import assumed_of as value_assumed
from attentest.targets.language_models.construction.plain_values import (
    unread_value,
    value_of,
    value_unread,
)
from attentest.targets.language_models.construction.settings import (
    DERIVED,
    EXPERTS,
    HALF,
    HEAD,
    NO_PAD,
    RATIOS,
    REPEATED,
    REPEATS,
    ROTARY,
    SHARED_HEADS,
    decodes,
    doubts_of,
    expression_of,
    is_beyond,
    is_dense,
    is_pad,
    is_width,
    layers_off,
    member_of,
    other_values,
    settings_read,
    takes_settings,
    without_unread_heads,
)
from attentest.targets.language_models.construction.uses import (
    OF_ANY_TABLE,
    field_by_use,
    size_by_use,
)
from attentest.targets.language_models.construction.usual_values import fixed_value, usual
from attentest.targets.language_models.construction.windows import (
    WINDOWED,
    fields_beside_window,
    is_window,
    of_window,
)
from attentest.targets.language_models.construction.written_fields import written
from attentest.targets.models.size_names import size_by_words, sizes_named
from attentest.targets.neighbours import functions_that_build, named_builders
from attentest.targets.signatures import constructor_arguments, sizes_in
from attentest_spec import Sizes

PROBE = Sizes(
    d_model=96,
    heads=6,
    kv_heads=2,
    d_ff=44,
    layers=2,
    source_vocabulary=29,
    target_vocabulary=29,
    max_length=33,
    window=64,
)
"""Sizes of which the shapes of all parameters differ, with fewer heads of keys than queries."""

MOST = 120
"""Limit of the ways to build a model that are tried."""

_FREE = ("target_vocabulary", "d_model", "heads", "layers", "d_ff", "max_length")
"""The sizes that an argument without a telling name may be."""

NEEDED = ("target_vocabulary", "d_model", "heads", "layers")
"""The sizes without which a model is no design, but one model."""


@dataclass(frozen=True)
class Building:
    """A model that is built by the `expression` of the name `sizes`, evaluated in `space`.

    `doubts` are sentences on it that may be wrong, `maker` is the function that it calls where that
    is not the class itself. `around` are the choices of what is put around code that is a part.
    A model of one block has the question that is asked `otherwise`, where it is none.
    """

    expression: str
    space: Mapping[str, Any]
    doubts: tuple[str, ...] = ()
    maker: Callable[..., Any] | None = None
    around: tuple[str, ...] = ()
    rows: int | None = None
    otherwise: Unclear | None = None

    def __call__(self, sizes: Sizes) -> Any:
        """Build at `sizes`."""
        return eval(self.expression, {**self.space, "sizes": sizes})

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with."""
        return sizes_in(self.expression)


Build = Callable[[Callable[..., Any], str, Reading], Building]
"""Returns how the model that a class of some name is, or is part of, is built."""


def building(thing: Callable[..., Any], name: str, reading: Reading) -> Building:
    """Return how the model that `thing` makes is built; Unclear where no way fits."""
    space = space_of(thing, name, reading)
    failures = []
    options = Options(space, reading, thing)
    expressions = list(islice(options.expressions(thing, name), MOST))
    said = (*parts.parts_assumed(thing, reading.given), *options.assumed)
    for built in (Building(one, space, doubts_of(thing, one, space) + said) for one in expressions):
        if not (failure := failure_of(built)):
            code, unread = without_unread_heads(thing, built.expression, space)
            code, names, kept = without_memos(thing, code, space)
            doubts = built.doubts + unread + kept
            return replace(built, expression=code, space=names, doubts=doubts)
        failures.append((built.expression, failure))
    others = (
        *(Building(one, space, own) for one, own in other_values(thing, failures, space, said)),
        *_with_written(thing, name, reading, space, options.unknown),
        *_with_constants(thing, name, reading, space, expressions[:2]),
        *_by_maker(thing, name, reading),
    )
    if fitting := next((one for one in others if not failure_of(one)), None):
        return fitting
    tried = f" Built as {failures[0][0]}: {failures[0][1]}." if failures else ""
    demand_runnable(name, failures[0][1] if failures else "", thing)
    named = f"{' and '.join(options.unknown)} {'is' if len(options.unknown) == 1 else 'are'}"
    unknown = f" Nothing says what {named}." if options.unknown else ""
    unknown += parts.parts_offered(thing, options.unknown) + named_builders(thing)
    question = question_of(name, f"{unknown}{tried}", (*_FREE, "kv_heads"), options.unknown)
    for one in [] if reading.strict else expressions[:2]:
        alone = Building(one, space, (*said, ONE_BLOCK), otherwise=question)
        if "layers" not in alone.known and not failure_of(alone):
            return alone
    raise question


def space_of(thing: Callable[..., Any], name: str, reading: Reading) -> dict[str, Any]:
    """Return the names of the file of `thing`, and of classes of settings and parts near it."""
    home = sys.modules.get(thing.__module__)
    own = {} if "." in name else {name: thing}
    around = {"SimpleNamespace": SimpleNamespace, **classes_of_defaults(thing)}
    around |= settings_near(thing) | parts.parts_near(thing, reading.given)
    return {**rounded_tables.OWN, **around, **(vars(home) if home else {}), **own}


def _with_written(
    thing: Callable[..., Any],
    name: str,
    reading: Reading,
    space: Mapping[str, Any],
    unknown: Sequence[str],
) -> Iterator[Building]:
    """Yield the ways to build `thing` with the values that the files around write for arguments."""
    codes, said = written(thing, unknown)
    options = Options(space, reading, thing, codes)
    for one in islice(options.expressions(thing, name), MOST if codes else 0):
        doubts = (*doubts_of(thing, one, space), *options.assumed, *said)
        yield Building(one, space, doubts)


def _with_constants(
    thing: Callable[..., Any],
    name: str,
    reading: Reading,
    space: Mapping[str, Any],
    expressions: Sequence[str],
) -> Iterator[Building]:
    """Yield the ways to build a copy of `thing` with sizes in the place of its constants.

    A size that an argument says is left to the argument: constants beside it stay as they are.
    """
    known = frozenset(size for one in expressions for size in sizes_in(one))
    for found in size_constants(thing, reading, known):
        pairs = [one.replace("source_vocabulary", _FREE[0]) for one in found.split(", ")]
        values = ", ".join(one for one in pairs if not sizes_in(one) & known)
        made = f"{copied.__name__}({name.partition('.')[0]}, {values})"
        for one in expressions:
            yield Building(
                made + one.removeprefix(name.partition(".")[0]),
                {**space, copied.__name__: copied},
                (assumed_of(values),),
            )


def _by_maker(thing: Callable[..., Any], name: str, reading: Reading) -> Iterator[Building]:
    """Yield the ways to call the one function that builds the class `thing`."""
    makers = functions_that_build(thing) if inspect.isclass(thing) else []
    for maker in makers if len(makers) == 1 else ():
        space = {"SimpleNamespace": SimpleNamespace, **maker.__globals__}
        said = f"assumed that {name} is built as {maker.__qualname__} does, and judged as that"
        options = Options(space, reading, maker)
        for expression in islice(options.expressions(maker, maker.__qualname__), MOST):
            built = Building(expression, space, (said,), maker)
            if built.known.issuperset(NEEDED) and _makes(built, thing):
                yield built  # another one may train its model


def _makes(built: Building, thing: Any) -> bool:
    """Say whether an object of the class `thing` is built, and no model that it is a part of."""
    try:
        with undisturbed():
            return isinstance(built(PROBE), thing)
    except Exception:  # code that a user wrote may raise anything
        return False


def failure_of(built: Building) -> str:
    """Return why `built` cannot be what is meant, "" where it can."""
    needed = [one for one in NEEDED if one != "layers" or built.otherwise is None]
    return failure_at(built, built.known, PROBE, needed)


ONE_BLOCK = "assumed that it is a model of one block, as nothing says how many: it is judged so"


class Options:
    """The expressions that arguments may get; `unknown` are those that nothing explains.

    `counted` are the names of numbers that arguments get, `free` the sizes that others may be.
    """

    def __init__(
        self,
        space: Mapping[str, Any],
        reading: Reading,
        top: Any,
        counted: Mapping[str, str] | None = None,
        free: Sequence[str] = _FREE,
    ) -> None:
        self.space = space
        self.reading = reading
        self.top = top
        self.counted = counted or {}
        self.free = free
        self.unknown: list[str] = []
        self.open: list[Any] = []
        self.within: list[str] = []
        self.assumed: Sequence[str] = ()

    def expressions(self, thing: Callable[..., Any], name: str) -> Iterator[str]:
        """Yield the calls of `thing` that names allow, the likeliest first."""
        arguments = constructor_arguments(thing)
        found = {own: self._code(thing, own, one, arguments) for own, one in arguments.items()}
        found |= dict.fromkeys(layers_off(found, arguments))
        required = [
            own
            for own, one in arguments.items()
            if found[own] is None and one.default is inspect.Parameter.empty
        ]
        self.unknown += required
        if parts.are_handed(thing, arguments, required, self.top):
            return
        taken = " ".join(one for one in found.values() if one and one not in DERIVED)
        free = [f"sizes.{one}" for one in self.free if f"sizes.{one}" not in taken]
        if len(required) > len(free) and thing is not self.top:  # fields that nothing may read
            found |= (unread := {own: unread_value(arguments[own]) for own in required})
            self.assumed = [*self.assumed, *(value_assumed(*one) for one in unread.items())]
            required = []
        for chosen in permutations(free, len(required)):
            codes = {**found, **dict(zip(required, chosen, strict=True))}
            yield f"{name}({', '.join(f'{own}={code}' for own, code in codes.items() if code)})"

    def _code(
        self,
        thing: Callable[..., Any],
        own: str,
        parameter: inspect.Parameter,
        arguments: Mapping[str, inspect.Parameter],
    ) -> str | None:
        """Return the expression for the argument `own`, None for its default or for no idea."""
        if own in self.counted:
            return self.counted[own]
        part = parts.class_for(thing, parameter, self.reading.given)
        if part is not None and part not in self.open:
            self.open.append(part)  # a part that takes one of its own kind has no end
            made = next(self.expressions(part, part.__name__), None)
            self.open.pop()
            return made
        if own in self.reading.given:
            return repr(self.reading.given[own])
        made = self._configuration(own, parameter, arguments) or member_of(parameter, self.space)
        made = made or decodes(own, parameter, self.top)
        if not made and own not in self.reading.arguments.values():
            made = value_of(own, parameter, self.top)
            if made and value_assumed(own, made) not in self.assumed:
                self.assumed = [*self.assumed, value_assumed(own, made)]
        made = made or self._plain(own, list(arguments), default=parameter.default)
        made = made or expression_of(size_by_use(thing, own, parameter.default)) or None
        if made is None and thing is not self.top and parameter.default is parameter.empty:
            made = expression_of(field_by_use(self.top, own)) or None  # a field of the model
        if made is None and is_pad(own) and parameter.default is parameter.empty:
            made = NO_PAD
            self.assumed = [*self.assumed, value_assumed(own, made)]
        if made is None and (made := value_unread(thing, own, parameter, self.top)):
            self.assumed = [*self.assumed, value_assumed(own, made)]
        return made

    def _plain(
        self, own: str, held: list[str], default: Any = inspect.Parameter.empty
    ) -> str | None:
        """Return the expression for a plain value called `own`, beside the names `held`."""
        name = squashed(own)
        said = next((size for size, one in self.reading.arguments.items() if one == own), "")
        if said:
            return expression_of(said)
        if fixed := fixed_value(name, default):
            return fixed
        names = [squashed(one) for one in held]
        if is_window(name, default, names):
            return WINDOWED
        if isinstance(default, (bool, str, dict, list)):
            return None
        if name in ROTARY and default is not None:
            return HALF
        if name in KEY_HEADS:
            others = [one for one in held if one != own and squashed(one) in KEY_HEADS]
            return REPEATED if name.endswith("groups") and others else SHARED_HEADS
        if name in RATIOS or (name in REPEATS and any(one in KEY_HEADS for one in names)):
            return REPEATED
        if name in HEAD_WIDTH:
            return HEAD
        if name in EXPERTS and (default is inspect.Parameter.empty or is_dense(default)):
            return None if is_dense(default) else f"sizes.{EXPERTS[name]}"
        of_table = name in OF_ANY_TABLE and any("voc" in one for one in names)
        found = "" if of_table else next(sizes_named(name, names, ""), "")
        found = found or ("" if "drop" in name or part_named(own) else size_by_words(name, ""))
        if found.endswith("_pad"):  # an id that is no token of the probe is one of no padding
            return "None" if is_beyond(default, PROBE) else None
        if found:
            return expression_of(found)
        if "drop" in name and not isinstance(default, nn.Module) and not is_width(default):
            return "sizes.dropout"
        return usual(own) if default is inspect.Parameter.empty else None

    def _configuration(
        self, own: str, parameter: inspect.Parameter, arguments: Mapping[str, inspect.Parameter]
    ) -> str:
        """Return the expression of the object of settings that `own` gets, "" for none."""
        made = class_of(self.space, self.top, own, parameter)
        if self.within and has_own_settings(parameter, self.space.get(made)):
            return ""
        if made and made not in self.within:
            self.within.append(made)
            found = next(self.expressions(self.space[made], made), "")
            self.within.pop()
            return found
        if made:  # settings that are made of settings, as a class is of a dictionary
            return Options(self.space, self.reading, self.space[made])._namespace(own)
        return self._namespace(own) if takes_settings(self.top, own, arguments) else ""

    def _namespace(self, own: str) -> str:
        """Return the expression of a configuration with the fields that the constructor reads."""
        made = kept_of(self.space, self.top, own)

        def fill(name: str, known: Mapping[str, str]) -> str | None:
            if name in self.reading.given:
                return repr(self.reading.given[name])
            held = [name, *known, *fields_beside_window(self.top, own, name)]
            found = self._plain(name, held, of_window(name, made.fields))
            return found or expression_of(field_by_use(self.top, name)) or None

        code, missing, assumed = settings_read(self.top, own, fill, made, PROBE)
        self.assumed = [*self.assumed, *assumed]
        self.unknown += [one for one in missing if one not in self.unknown]
        return code
