"""The reading of a class that makes the rows of its layers of something else than a row each."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Protocol

from torch import nn

from attentest.targets.adapt.code import Code, Inner
from attentest.targets.adapt.construction import Construction
from attentest.targets.adapt.encoders.image_names import IMAGES
from attentest.targets.adapt.encoders.leaving import options_of_output
from attentest.targets.adapt.encoders.mixing import demand_separate_samples
from attentest.targets.adapt.encoders.rows.shapes import (
    numbers_of_rows,
    shapes_of_ids,
    shapes_of_images,
    shapes_of_vectors,
)
from attentest.targets.adapt.encoders.rows.wrapping import RowsWrapping
from attentest.targets.adapt.encoders.seen import Uncalled
from attentest.targets.adapt.encoders.wrapping import LENGTH
from attentest.targets.adapt.limits import demand_least_width
from attentest.targets.adapt.parameters.stacks import Layers
from attentest.targets.adapt.parameters.units import Unit
from attentest.targets.adapt.reading import Unclear
from attentest_spec import Sizes
from attentest_spec.choices import Value

_POSITIONS = 12
"""The greatest length of a class that is built for one length."""
_FILLED = 136
"""The greatest length of a class whose sequences are filled with padding: more than is judged."""
_LONGEST = 600
"""The greatest number of rows that are tried: scores of thousands take minutes to compute."""
_MOST = 60
"""The largest number of shapes that are tried."""


_OF_IMAGES = (
    "{0} takes images, and its layers are what can be judged of it: no call with images of the "
    "usual sizes showed how they get their rows. Name the class of its layers, {1}, or of its "
    "encoder."
)


class OfImages(Unclear):
    """Images make the rows of the layers, and no usual ones showed how."""

    @classmethod
    def by(cls, name: str, layer: str) -> "OfImages":
        """Return the question about the class `name` with layers of the class `layer`."""
        return cls(_OF_IMAGES.format(name, layer))


class Found(Protocol):
    """A class that was built, and the list of layers in it."""

    @property
    def module(self) -> nn.Module:
        """The class, built."""

    @property
    def built(self) -> Construction:
        """Its construction."""

    @property
    def sizes(self) -> Sizes:
        """The sizes that it is built at."""

    @property
    def component(self) -> str:
        """The component that its layers are."""

    @property
    def layers(self) -> Layers:
        """The list of layers."""

    @property
    def units(self) -> Sequence[Unit]:
        """All of its parameters."""

    @property
    def path(self) -> str:
        """The path of the module that holds the layers."""

    @property
    def tables(self) -> list[Unit]:
        """The tables of tokens outside of the layers."""

    def with_positions(self, number: int) -> "Found | None":
        """Return the class with so many positions, None where it has no number of them."""

    def with_columns(self, columns: int, positions: int) -> "Iterator[Found]":
        """Yield the class with an argument as the number of columns of a patch."""

    def sub_module(self) -> tuple[Inner, None] | None:
        """Return the outermost sub-module with the layers, at most a norm, and no more."""

    def entering(self, name: str, length: int) -> Mapping[str, Value]:
        """Return the options of the embedding and the positions of ids (B, L)."""

    def code(self, thing: type[nn.Module], name: str) -> Code:
        """Return the stack in the class as code, called with ids of any length."""

    def code_of(
        self, thing: type[nn.Module], name: str, inner: Inner, signature: inspect.Signature | None
    ) -> Code:
        """Return `inner` as code, called with `signature` or with its own."""


def of_images(found: Found, thing: type[nn.Module], name: str) -> Code | None:
    """Return the stack in a class that makes rows of the patches of images, None for others."""
    for image in shapes_of_images(thing, found.module):
        if (code := _of_given(found, thing, name, image)) is not None:
            return code
        for number in numbers_of_rows(found.module, image):
            fixed = found.with_positions(number)
            if fixed and (code := _of_given(fixed, thing, name, image)) is not None:
                return code
    for image in islice(shapes_of_images(thing, found.module), 1):
        columns = image[0] * IMAGES["patchsize"] ** 2
        for number in (0, *numbers_of_rows(found.module, image)):
            for fixed in found.with_columns(columns, number):
                if (code := _of_given(fixed, thing, name, image)) is not None:
                    return code
    return None


def code_or_rows(found: Found, thing: type[nn.Module], name: str) -> Code:
    """Return the stack in a class of ids, which may take sequences of one length alone."""
    try:
        return found.code(thing, name)
    except Uncalled as question:
        if (rows := of_rows(found, thing, name, question.lengths)) is not None:
            return rows
        raise


def of_rows(
    found: Found, thing: type[nn.Module], name: str, lengths: Sequence[int] = ()
) -> Code | None:
    """Return the stack in a class that makes other rows of ids or vectors than one for each.

    There may be one more, of a class, or only as many as a table has, or one of the `lengths`,
    where no argument says that. None for other classes.
    """
    sized = found.with_positions(_POSITIONS) or found
    of_lengths = ((found, "", (one,)) for one in lengths if sized is found)
    short = (one for one in _shapes(sized) if max(one[1]) <= _LONGEST)
    shaped = ((sized, *one) for one in islice(short, _MOST))
    built = [(sized, "", (_POSITIONS,))] if lengths and sized is not found else []
    for fixed, features, given in chain(of_lengths, shaped, built):
        around = _around(fixed, name, given, features)
        if around.is_answered() and around.is_read() and around.takes_other_rows():
            demand_least_width(fixed.built, fixed.sizes, name, "the class of its layers")
            demand_separate_samples(around, name)
            code = fixed.code_of(thing, name, *around.inner())
            read = partial(options_of_output, around)
            if len(given) == 1 and code.entering:
                read = partial(fixed.entering, name, *given)
            return replace(code, entering=read)
    return _filled(found, thing, name)


def _filled(found: Found, thing: type[nn.Module], name: str) -> Code | None:
    """Return the stack in a class that takes ids of one length alone, and hides padding in them."""
    if not found.tables or (fixed := found.with_positions(_FILLED)) is None:
        return None
    around = _around(fixed, name, (_FILLED,))
    if around.is_answered() and around.is_read() and (read := around.filled()) is not None:
        demand_separate_samples(around, name)
        code = fixed.code_of(thing, name, *read)
        return replace(code, entering=partial(fixed.entering, name, _FILLED))
    return None


def _shapes(found: Found) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield what one sample may be: the path of what maps vectors to rows, "" for ids; a shape."""
    width = found.sizes.d_model
    outside = [one for one in found.units if not found.layers.holds(one)]
    held = {one.weight for one in outside}
    named = [*found.module.named_parameters(), *found.module.named_buffers()]
    inside = [name for one in found.units if found.layers.holds(one) for name in one.names]
    tables = [tuple(x.shape) for name, x in named if name in held or name not in inside]
    yield from (("", one) for one in shapes_of_ids(tables, width))
    yield from shapes_of_vectors(found.module, found.path, tables, width)
    if not found.tables and any(one.kind in ("linear", "packed") for one in outside):
        yield "", (LENGTH, 0)


def _around(found: Found, name: str, given: tuple[int, ...], features: str = "") -> RowsWrapping:
    known = "", found.path, False, features
    return RowsWrapping(name, found.module, found.sizes, found.component, *known, given=given)


def _of_given(
    found: Found, thing: type[nn.Module], name: str, given: tuple[int, ...]
) -> Code | None:
    """Return the stack in a class that makes rows of what is `given`, None for others."""
    around = _around(found, name, given)
    alone = found.sub_module()
    read = around.inner() if around.is_read() else None
    if read is None and alone and around.enters(alone[0].path):
        read = alone[0], around.alone(alone[0].path)
    if read is not None:
        demand_least_width(found.built, found.sizes, name, "the class of its layers")
        demand_separate_samples(around, name)
        code = found.code_of(thing, name, *read)
        return replace(code, entering=partial(options_of_output, around))
    return None
