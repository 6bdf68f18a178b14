"""The construction of a class at the sizes of the contract, by the names of its parameters."""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn
from torch.nn.functional import relu
from torch.nn.parameter import is_lazy

from attentest.targets.adapt.advice.values_tried import attempts_of_values
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.fillings import (
    NEEDED,
    SOME_CLASSES,
    STACKS,
    WIDER_INNER,
    WIDER_RATIO,
    Filling,
    filling_of,
    fixed,
    head_width,
    is_required,
    sizes_known,
)
from attentest.targets.adapt.names import CLASSES, RATIO, SIZES
from attentest.targets.adapt.objects import parts
from attentest.targets.adapt.objects.compared_words import (
    names_file,
    worded,
    words_at_calls,
)
from attentest.targets.adapt.objects.configuration import Fields, holds_settings
from attentest.targets.adapt.objects.derived_heads import derived_heads
from attentest.targets.adapt.objects.groups_of_fields import fields_and_groups, only_stored
from attentest.targets.adapt.objects.left_out import said_of
from attentest.targets.adapt.objects.made_settings import made_settings
from attentest.targets.adapt.objects.named_sizes import (
    filling_of_field,
    numbers_by_words,
    sizes_by_name_or_use,
)
from attentest.targets.adapt.objects.settings import (
    gets_settings,
    settings_assumed,
    settings_classes,
    several_settings,
)
from attentest.targets.adapt.objects.shapes import as_shape
from attentest.targets.adapt.objects.sizes_left import is_axis, size_left
from attentest.targets.adapt.probing import SIZES as PROBED
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear, own_recipe
from attentest.targets.adapt.wrappers.batches import of_items
from attentest.targets.adapt.wrappers.lazy import materialised
from attentest.targets.adapt.wrappers.own_heads import one_for_heads, own_heads
from attentest.targets.adapt.wrappers.own_layers import one_for_all, own_layers
from attentest.targets.constants.copies import copied
from attentest.targets.neighbours import file_of, named_builders
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Sizes
from attentest_spec.components import inside

WHOLE_RATIO = 4
"""The usual ratio of the two widths of a feed-forward network, where it must be a whole number."""


@dataclass(frozen=True)
class Construction:
    """The construction of a class: what each argument of its constructor gets, and all it has.

    `constants` are those of its code that are sizes: it is built in copies that have others.
    `remark` is an assumption about what is made, "" for none. `shared` is the path of one layer for
    all depths, of which each gets its own, or of the only one, "" for none. `heads` are the paths
    of matrices that every head gets, on the axis `heads_axis`, or of lists of them: there is one
    for all heads in their place. `outputs` are those of attention that gets an output projection.
    `batch` is what a call takes as one argument, where it is called with the items of that.
    """

    make: Callable[..., Any]
    fillings: Mapping[str, Filling]
    arguments: frozenset[str]
    constants: Mapping[str, Filling] = dataclasses.field(default_factory=dict)
    remark: str = ""
    shared: str = ""
    heads: tuple[str, ...] = ()
    heads_axis: int = 0
    outputs: tuple[str, ...] = ()
    batch: tuple[Any, ...] = ()

    def __call__(self, sizes: Sizes) -> Any:
        """Build at `sizes`."""
        made = materialised(self._made(sizes), sizes)
        made = of_items(made, *self.batch) if self.batch else made
        if self.heads or self.outputs:
            made = own_heads(made, self.heads, self.heads_axis, sizes.heads, self.outputs)
        times = 1 if self.has_one_layer else sizes.layers
        return own_layers(made, self.shared, times) if self.shared else made

    def _made(self, sizes: Sizes) -> Any:
        make = copied_at(self.make, self.constants, sizes)
        return make(**{own: filling.value(sizes) for own, filling in self.fillings.items()})

    def with_positions(self, number: int) -> "Construction":
        """Return it with so many positions, itself where no argument is the greatest length."""
        return self._with_size("max_length", number)

    def with_pad(self, number: int) -> "Construction":
        """Return it with one pad id for all sizes, itself where no argument is that."""
        return self._with_size("source_pad", number)

    def _with_size(self, size: str, number: int) -> "Construction":
        left = {own: fixed(number) for own, one in self.constants.items() if one.settles == {size}}
        sized = self.with_constants({**self.constants, **left}) if left else self
        found: dict[str, Filling] = {}
        for own, one in self.fillings.items():
            if isinstance(part := one.value, Construction):
                made = part._with_size(size, number)
                found |= {own: _held(made)} if made is not part else {}
            elif one.settles == {size}:
                found[own] = fixed(number)
        return dataclasses.replace(sized, fillings={**self.fillings, **found}) if found else sized

    def with_columns(self, number: int) -> "Iterator[Construction]":
        """Yield it with each argument that is a width as `number`, where several are."""
        widths = [own for own, one in self.fillings.items() if one.settles == {"d_model"}]
        for own in widths if len(widths) > 1 else ():
            yield dataclasses.replace(self, fillings={**self.fillings, own: fixed(number)})

    @property
    def is_lazy(self) -> bool:
        """Whether parameters of what it builds get their shapes at the first call."""
        made = self._made(PROBED)
        return isinstance(made, nn.Module) and any(is_lazy(one) for one in made.parameters())

    @property
    def known(self) -> frozenset[str]:
        """The sizes that it is built with, those of a configuration included."""
        held = [*self.fillings.values(), *self.constants.values()]
        return frozenset[str]().union(*(one.settles for one in held))

    @property
    def has_one_layer(self) -> bool:
        """Whether the `shared` layer is the only one."""
        return bool(self.shared) and "layers" not in self.known

    @property
    def words(self) -> str:
        """The inputs of the arguments, in one phrase."""
        return ", ".join(f"{own}={filling.words}" for own, filling in self.fillings.items())

    @property
    def assumed(self) -> list[str]:
        """The assumptions about the parts that it is built with: those of other files."""
        said = [self.remark] * bool(self.remark)
        said += one_for_all(self.shared * (not self.has_one_layer))
        said += one_for_heads(self.heads, self.heads_axis, self.outputs)
        said += said_of(self.fillings)
        for own, one in self.fillings.items():
            part = one.value
            if not isinstance(part, Construction):
                continue
            file, made = file_of(part.make), part.make
            if file and file != file_of(self.make) and issubclass(made, nn.Module):  # type: ignore[arg-type]  # file_of is None for what is no class
                said.append(
                    f"assumed that {own} is a {made.__name__} of {file.name}, as its name says, "
                    f"and judged with that"
                )
            said += part.assumed
        return said

    def with_constants(self, constants: Mapping[str, Filling]) -> "Construction":
        """Return it with `constants` that are sizes."""
        arguments = self.arguments | frozenset(constants)
        return dataclasses.replace(self, constants=constants, arguments=arguments)

    def with_wider_inner(self) -> "Construction":
        """Return it with 3/2 of the inner width, for a gated network that takes 2/3 of that."""
        fillings = dict(self.fillings)
        for own, filling in self.fillings.items():
            if filling.settles == {"d_ff"}:
                fillings[own] = WIDER_RATIO if squashed(own) in RATIO else WIDER_INNER
        return dataclasses.replace(self, fillings=fillings)

    def with_whole_ratio(self) -> "Construction":
        """Return it with a ratio of widths that is a whole number, and no inner width to choose."""
        given, ratio = self.fillings.items(), fixed(WHOLE_RATIO)
        made = {n: ratio if squashed(n) in RATIO else _with_whole_ratio(one) for n, one in given}
        return dataclasses.replace(self, fillings=made)

    def with_classes(self) -> "Construction":
        """Return it with a number of classes where that is None, which it may refuse."""
        arguments = constructor_arguments(self.make)
        left = [own for own, one in arguments.items() if one.default is None]
        named = {own: fixed(SOME_CLASSES) for own in left if squashed(own) in CLASSES}
        return dataclasses.replace(self, fillings={**named, **self.fillings})


def _with_whole_ratio(filling: Filling) -> Filling:
    """Return what an object of settings is built with, with such a ratio; others as they are."""
    if not isinstance(filling.value, Construction):
        return filling
    return _held(filling.value.with_whole_ratio())


def _held(made: Construction) -> Filling:
    return Filling(f"({made.words})", made, made.known)


def copied_at(thing: Any, constants: Mapping[str, Filling], sizes: Sizes) -> Any:
    """Return `thing` of a copy of its file, whose `constants` are `sizes`; itself for none.

    Unsupported where a number of heads among them does not divide the width: nothing is given that
    could be refused.
    """
    if splits_heads(constants):
        head_width(sizes)
    values = {own: one.value(sizes) for own, one in constants.items()}
    return copied(thing, **values) if values else thing


def splits_heads(constants: Mapping[str, Filling]) -> bool:
    """Say whether a number of heads is among the constants."""
    return any("heads" in one.settles for one in constants.values())


def construction(thing: Callable[..., Any], component: str, reading: Reading) -> Construction:
    """Return how `thing` is built; Unclear for an argument that must be given and says nothing."""
    arguments = constructor_arguments(thing)
    inner = {
        own: construction(parameter.annotation, component, reading)
        for own, parameter in arguments.items()
        if own not in reading.given and _is_configuration(parameter)
    }
    for own, parameter in arguments.items():
        if chosen := parts.class_given(thing, parameter, reading.given.get(own)):
            inner[own] = construction(chosen, component, reading)
    read = {
        own: as_shape(thing, one, component, filling_of(own, one, component, reading, arguments))
        for own, one in arguments.items()
    } | {own: _held(one) for own, one in inner.items()}
    unknown = [own for own, one in read.items() if one is None and is_required(arguments[own])]
    for own in [one for one in unknown if gets_settings(arguments[one], thing)]:
        inner[own] = _configuration(thing, own, read, component, reading)
        read[own] = _held(inner[own])
        unknown.remove(own)
    for own, part in parts.parts_of(thing, component, unknown).items():
        inner[own] = construction(part, component, reading)
        name = part.__name__
        read[own] = Filling(f"{name}({inner[own].words})", inner[own], inner[own].known)
        unknown.remove(own)
    for own, made in parts.values_given(thing, component, unknown).items():
        read[own] = made
        unknown.remove(own)
    numbers = sizes_known(one for own, one in read.items() if own not in inner)
    for own, said in sizes_by_name_or_use(thing, component, unknown, numbers).items():
        if parts.several_parts(thing, component, [own]) and not is_axis(thing, read, own, said):
            continue  # a part that several classes make, and no width
        read[own] = said
        unknown.remove(own)
    read |= numbers_by_words(component, arguments, read)
    read |= _activations_by_name(thing, read) if not unknown else {}
    is_one = len(unknown) == 1 and not names_file(unknown[0])  # a number names no file
    if is_one and (last := size_left(thing, component, unknown, read)) is not None:
        read[unknown.pop()] = last
    if unknown:
        raise _question(thing, component, unknown, read.values())
    given = {own: filling for own, filling in read.items() if filling is not None}
    held = frozenset(arguments).union(*(one.arguments for one in inner.values()))
    plain = Construction(thing, given, held)
    heads = {} if "heads" in plain.known else derived_heads(given, plain)
    return dataclasses.replace(plain, fillings={**given, **heads})


def _activations_by_name(
    thing: Callable[..., Any], read: Mapping[str, Filling | None]
) -> dict[str, Filling]:
    """Return the names or classes of activations, where `thing` takes those and no function."""
    try:
        values = {own: one.value(PROBED) for own, one in read.items() if one is not None}
    except Exception:  # a configuration of the user's may refuse its fields
        return {}
    named = [own for own, value in values.items() if value is relu]
    if not named or _builds(thing, values):
        return {}
    for other in (relu.__name__, nn.ReLU):
        if _builds(thing, {**values, **dict.fromkeys(named, other)}):
            return dict.fromkeys(named, fixed(other))
    return {}


def _is_configuration(parameter: inspect.Parameter) -> bool:
    """Say whether an argument is annotated with a class whose fields are sizes."""
    annotated = parameter.annotation
    if not inspect.isclass(annotated) or annotated is parameter.empty:
        return False
    own = annotated.__module__ != "builtins" and bool(constructor_arguments(annotated))
    own = own and "__init__" in vars(annotated) and not issubclass(annotated, Mapping)  # keys
    return holds_settings(annotated) or (own and gets_settings(parameter))


def _configuration(
    thing: Callable[..., Any],
    own: str,
    read: Mapping[str, Filling | None],
    component: str,
    reading: Reading,
) -> Construction:
    """Return how the configuration `own` is made: with the fields that the constructor reads."""
    rest = {name: one.value(PROBED) for name, one in read.items() if one is not None}
    made = made_settings(thing, own)

    def fill(name: str, known: Collection[str]) -> Filling | None:
        return filling_of_field(name, component, reading, known) or made.filling(name)

    def grouped(one: Fields[Filling]) -> Filling:
        return _held(Construction(one.make, one.found, frozenset(one.found)))

    def read_at(sizes: Sizes) -> Fields[Filling]:
        others = {name: one.value(sizes) for name, one in read.items() if one is not None}

        def build(config: Any) -> Any:
            return thing(**others, **{own: config})

        with undisturbed():
            stored = partial(only_stored, thing)
            return fields_and_groups(build, fill, lambda one: one.value(sizes), grouped, stored)

    fields = read_at(PROBED)
    if fields.found and not fields.missing:  # some are read where there is dropout alone
        fields.found |= read_at(PROBED.but(dropout=0.5)).found
    if not fields.found or (fields.missing and not _builds(thing, {**rest, own: _made(fields)})):
        if not fields.by_key and (written := _settings(thing, own, rest, component, reading)):
            return written
        if fields.missing:
            raise _question(thing, component, [fields.missing[-1]], fields.found.values())
    given = {name: fixed(value) for name, value in reading.given.items() if name not in read}
    found = {**fields.found, **given}
    found = made.fillings_at_calls(thing, found, fill) | found
    words = {} if fields.by_key else words_at_calls(thing, own, found)
    remark = made.remark(own) or worded(words)
    found = {name: fixed(one) for name, one in words.items()} | found
    return Construction(fields.make, found, frozenset(found), remark=remark)


def _settings(
    thing: Callable[..., Any], own: str, rest: Mapping[str, Any], component: str, reading: Reading
) -> Construction | None:
    """Return how the class of settings that has the fields is built; Unclear for several."""
    classes = settings_classes(thing, own)
    if len(classes) > 1:
        raise Unclear(several_settings(thing, own, classes))
    for one in classes:
        found = construction(one, component, reading)
        if _builds(thing, {**rest, own: found(PROBED)}):
            return dataclasses.replace(found, remark=settings_assumed(thing, own, one))
    return None


def _made(fields: Fields[Filling]) -> Any:
    return fields.make(**{name: one.value(PROBED) for name, one in fields.found.items()})


def _builds(thing: Callable[..., Any], arguments: Mapping[str, Any]) -> bool:
    try:
        with undisturbed():
            thing(**arguments)
    except Exception:  # code that a user wrote may raise anything
        return False
    return True


def sizes_needed(component: str) -> frozenset[str]:
    """Return the sizes that `component` has."""
    needed = {size for size, part in NEEDED.items() if part in inside(component)}
    return frozenset(["d_model", *needed, *["layers"] * (component in STACKS)])


def _question(
    thing: Callable[..., Any],
    component: str,
    unknown: Sequence[str],
    read: Iterable[Filling | None],
) -> Unclear:
    name = getattr(thing, "__name__", type(thing).__name__)
    needed = {*sizes_needed(component), *["max_length"] * (component == "positional_encoding")}
    left = needed - sizes_known(read)
    return Unclear(
        f"{name}({', '.join(constructor_arguments(thing))}) cannot be built as {component}: "
        f"nothing says what {' and '.join(unknown)} {'is' if len(unknown) == 1 else 'are'}."
        f"{parts.several_parts(thing, component, unknown)}{named_builders(thing)}",
        f"An argument can be a size ({', '.join(SIZES)}), or have a fixed value; what needs more "
        f"is built in a file of your own: {own_recipe(component, name)}.",
        attempts=[*attempts_of_values(thing, component, unknown, left)],
        built=True,
    )
