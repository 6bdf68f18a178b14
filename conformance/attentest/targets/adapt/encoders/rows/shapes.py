"""The shapes of what an encoder may make rows of: images, ids of one length, vectors."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import product

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import (
    IMAGE_SIZE,
    IMAGES,
    PATCH_SIZE,
    image_size,
    is_of_images,
)
from attentest.targets.adapt.encoders.wrapping import LENGTH
from attentest.targets.adapt.parameters.units import squeezed

_SIZES = (224, 32, 28, 64, 96, 128, 256, 384)
"""The usual heights of images that are fixed in code."""
_FEW = 2
"""The largest number of matrices that are tried."""


def takes_images(thing: type[nn.Module]) -> bool:
    """Say whether a class is built with the size of images, or with that of their patches."""
    held = [squashed(one) for one in inspect.signature(thing).parameters]
    sized = (one for one in held if one in (*IMAGE_SIZE, *PATCH_SIZE))
    return any(is_of_images(one, held) for one in sized)


def _code_of(module: nn.Module) -> str:
    """Return the code of the class of `module`, and those of its parts that are not torch's."""
    classes = dict.fromkeys(type(one) for one in module.modules())
    found = []
    for one in classes:
        with suppress(OSError, TypeError):  # classes that `type` makes have none
            found += [] if one.__module__.startswith("torch.") else [inspect.getsource(one)]
    return "\n".join(found)


def shapes_of_images(thing: type[nn.Module], module: nn.Module) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of images that `module` of the class `thing` may take, the likeliest first.

    Nothing is yielded where no convolution over images, and no argument or field, is about them.
    """
    convolutions = [one for one in module.modules() if isinstance(one, nn.Conv2d)]
    arguments = inspect.signature(thing).parameters
    parameters = arguments.values()
    every = [squashed(one.name) for one in parameters]
    if "chw" in every:
        yield IMAGES["chw"]
    named = [one for one in parameters if squashed(one.name) in IMAGE_SIZE]
    named = [one for one in named if convolutions or is_of_images(squashed(one.name), every)]
    code = "" if convolutions or named else squashed(_code_of(module))
    if code and "patch" not in code and "image" not in code and "img" not in code:
        return
    held = [one.default for one in named if isinstance(one.default, int | tuple | list)]
    pairs = [tuple(one)[-2:] if isinstance(one, tuple | list) else (one, one) for one in held]
    usual = [(one, one) for one in (image_size(arguments), IMAGES["imagesize"], *_SIZES)]
    channels = dict.fromkeys([*(one.in_channels for one in convolutions[:1]), 3, 1])
    for pair, number in product(dict.fromkeys([*pairs, *usual]), channels):
        if len(pair) == 2 and all(isinstance(one, int) for one in pair):
            yield (number, *pair)


def numbers_of_rows(module: nn.Module, image: tuple[int, ...]) -> Iterator[int]:
    """Yield the numbers of rows that `image` may give: a class is a row more than its patches."""
    strides = [one.stride[0] for one in module.modules() if isinstance(one, nn.Conv2d)]
    patch = strides[0] if strides else IMAGES["patchsize"]
    patches = (image[1] // patch) * (image[2] // patch)
    yield from (patches + 1, patches)


def shapes_of_ids(tables: Sequence[tuple[int, ...]], width: int) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of the ids of one sample: any length, and those that `tables` may have.

    A table of positions has a row more where a class is put before the tokens. Nothing is yielded
    where none is as wide as the model, (V, D).
    """
    if any(len(one) == 2 and one[1] == width for one in tables):
        yield from ((one,) for one in _lengths(tables, width))


def shapes_of_vectors(
    module: nn.Module, layers: str, tables: Sequence[tuple[int, ...]], width: int
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the shapes of the vectors of one sample, and the path of what maps them to rows.

    That is a matrix or a convolution outside of the `layers`; a width of 0 is the number of its
    columns or channels. A matrix may get them flattened, as those of patches (N, H, W).
    """
    every = {path: one for path, one in module.named_modules() if not path.startswith(f"{layers}.")}
    matrices = [
        path
        for path, one in every.items()
        if isinstance(one, nn.Linear) and one.out_features == width
    ]
    for path in matrices[:_FEW]:
        yield from ((path, (one, 0)) for one in _lengths(tables, width))
        yield from ((path, (one, 0, 1)) for one in _lengths(tables, width))
    along = {path: one for path, one in every.items() if isinstance(one, nn.Conv1d)}
    for path, one in [*along.items()][:1]:
        for length in (one.stride[0] * rows for rows in _lengths(tables, width)):
            yield from ((path, (0, length)), (path, (length, 0)))


def _lengths(tables: Sequence[tuple[int, ...]], width: int) -> Iterator[int]:
    """Yield numbers of rows: any, those of each of the `tables`, and one less for a class."""
    shapes = map(squeezed, tables)
    rows = [one[0] for one in shapes if len(one) == 2 and one[1] == width and one[0] > 3]
    yield from dict.fromkeys([LENGTH, *(each for one in rows for each in (one, one - 1))])
