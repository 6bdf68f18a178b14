"""The names of arguments about images and their patches, and what these are given."""

import inspect
from collections.abc import Collection, Mapping
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import words

IMAGE_SIZE = words(
    "imagesize imgsize imageheight imagewidth imgheight imgwidth imageresolution inputresolution "
    "imgresolution imageres imgres imgdim imagedim inputsize inputresolution resolution "
    "imsize imres imheight imwidth imgsz imagesz imdim imageshape imgshape imshape inputshape"
)
"""The height and width of images."""
PATCH_SIZE = words(
    "patchsize patchheight patchwidth patchdim patchlen psize patch patchshape patchsz"
)
_CHANNELS = words(
    "imchannels imgchannels imagechannels numchannels nchannels inchans inchan colorchannels "
    "numinputchannels"
)
_LOOSE_CHANNELS = words("channels inchannels inputchannels cin inch inc channel inchannel cdim")
PAIRS = words("patchessize patchesresolution patchesshape")
"""Sizes of patches in a group of settings, as in `config.patches["size"]`: a height and a width."""
PAIR = (16, 16)
"""The usual size of patches, of images that are usually 224 by 224 there."""
SHAPES = [*IMAGE_SIZE, *PATCH_SIZE]
"""Settings that may be given as a shape, with an axis for the height and one for the width."""
IMAGES: Mapping[str, Any] = {
    **dict.fromkeys(IMAGE_SIZE, 16),
    **dict.fromkeys(("height", "width"), 16),
    **dict.fromkeys(PATCH_SIZE, 4),
    **dict.fromkeys([*_CHANNELS, *_LOOSE_CHANNELS], 3),
    **dict.fromkeys(words("numpatches npatches numpatch numofpatches numberofpatches"), 16),
    "chw": (1, 28, 28),
}
"""Settings of encoders of images, which are no sizes: what is made of images is not judged."""


def image_size(arguments: Collection[str]) -> int:
    """Return the height of images that are given: four patches, where these have a size by default.

    `arguments` are those of a constructor, with their defaults or their names alone.
    """
    held = arguments.values() if isinstance(arguments, Mapping) else ()
    sizes = [one.default for one in held if squashed(one.name) in PATCH_SIZE]
    usual: int = IMAGES["imagesize"]
    return max([usual, *(4 * one for one in sizes if type(one) is int)])


def is_of_images(own: str, held: Collection[str]) -> bool:
    """Say whether an argument by the name `own` is about images, beside the arguments `held`."""
    if own in ("height", "width"):  # a width alone is that of the model
        return {"height", "width"} <= set(held)
    if own in _LOOSE_CHANNELS or own in (
        "inputsize",
        "inputshape",
        "resolution",
        "patch",
        "patchdim",
    ):
        sized = [*IMAGE_SIZE, *PATCH_SIZE]
        return any(one in sized and one != own for one in held)
    return own in IMAGES


def value_of_images(name: str, parameter: inspect.Parameter, arguments: Collection[str]) -> Any:
    """Return what a setting of images called `name` gets; a pair where its annotation says one."""
    value = image_size(arguments) if name in IMAGE_SIZE else IMAGES[name]
    is_pair = str(parameter.annotation).lower().startswith(("tuple", "typing.tuple"))
    return (value, value) if is_pair and type(value) is int else value
