"""Encoders of images: classes that make rows of patches, and the stack of layers inside."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.code import Inner
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import IMAGE_SIZE, IMAGES, PATCH_SIZE
from attentest.targets.adapt.encoders.seen import Seen
from attentest.targets.adapt.encoders.stack import is_same, replaced
from attentest.targets.adapt.encoders.wrapping import BATCH, Wrapping, required
from attentest.targets.adapt.probing import undisturbed

_SIZES = (224, 32, 28, 64, 96, 128, 256, 384)
"""The usual heights of images that are fixed in code."""
_LEAST = 3
"""The least number of rows that patches give: two samples have fewer axes of that length."""


@dataclass(frozen=True)
class ImageWrapping(Wrapping):
    """A class that makes rows of patches of an `image` (C, H, W), and calls its layers."""

    image: tuple[int, ...] = ()

    def inner(self) -> tuple[Inner, inspect.Signature]:
        """Return how the layers are called, with vectors and nothing else."""
        own = required(self.module)[0]
        seen = self._seen()
        options: dict[str, Any] = {"layers": self.layers, "tokens": own, "image": self.image}
        options |= {"norm": seen.norm, "sequence_first": seen.shape[0] != BATCH}
        x = inspect.Parameter("x", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return Inner(self.path, options), inspect.Signature([x])

    def is_read(self) -> bool:
        """Say whether a call with images calls its layers in a row, each after the last.

        The first one gets rows as wide as the model, one for each patch.
        """
        if len(required(self.module)) != 1:
            return False
        layers = list(self.module.get_submodule(self.layers).children())
        called: list[nn.Module] = []
        passed: list[Any] = []

        def noted(one: nn.Module, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            output = call(*args, **named)
            called.append(one)
            passed.append(next(x for x in (*args, *named.values()) if isinstance(x, Tensor)))
            passed.append(output[0] if isinstance(output, tuple) else output)
            return output

        with suppress(Exception), undisturbed(), ExitStack() as noting:
            for one in layers:
                noting.enter_context(replaced(one, partial(noted, one)))
            self.module(self._images())
        follow = zip(passed[1:-1:2], passed[2::2], strict=True)
        if called != layers or not all(is_same(*two) for two in follow):
            return False
        seen = self._seen()
        *lead, width = seen.shape
        return not seen.several and width == self.sizes.d_model and self._has_rows(lead)

    def enters(self, path: str) -> bool:
        """Say whether a call gives the module at `path` rows as wide as the model, and no more.

        A mask that is None is nothing.
        """
        given: list[Any] = []

        def enter(call: Callable[..., Any], *args: Any, **named: Any) -> Any:
            given.append([one for one in (*args, *named.values()) if one is not None])
            return call(*args, **named)

        inside = self.module.get_submodule(path)
        with suppress(Exception), undisturbed(), replaced(inside, enter):
            self.module(self._images())
        if len(given) != 1 or len(given[0]) != 1 or not isinstance(given[0][0], Tensor):
            return False
        *lead, width = given[0][0].shape
        return width == self.sizes.d_model and self._has_rows(lead)

    def alone(self, path: str) -> inspect.Signature:
        """Return the signature of the module at `path` with its rows, and nothing else."""
        own = inspect.signature(self.module.get_submodule(path).forward)
        return own.replace(parameters=[*own.parameters.values()][:1])

    def _has_rows(self, lead: list[int]) -> bool:
        return len(lead) == 2 and BATCH in lead and max(lead) >= _LEAST

    def _images(self) -> Tensor:
        first = next(self.module.parameters())
        source = torch.Generator().manual_seed(0)
        return torch.randn(BATCH, *self.image, generator=source).to(first.dtype)

    def _seen(self) -> Seen:
        seen = Seen(self.module, self.layers)
        with suppress(Exception), undisturbed(), seen:
            self.module(self._images())
        return seen


def takes_images(thing: type[nn.Module]) -> bool:
    """Say whether a class is built with the size of images, or with that of their patches."""
    held = (squashed(one) for one in inspect.signature(thing).parameters)
    return any(one in (*IMAGE_SIZE, *PATCH_SIZE) for one in held)


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
    parameters = inspect.signature(thing).parameters.values()
    named = [one for one in parameters if squashed(one.name) in IMAGE_SIZE]
    code = "" if convolutions or named else squashed(_code_of(module))
    if code and "patch" not in code and "image" not in code and "img" not in code:
        return
    held = [one.default for one in named if isinstance(one.default, int | tuple | list)]
    pairs = [tuple(one)[-2:] if isinstance(one, tuple | list) else (one, one) for one in held]
    usual = [(one, one) for one in (IMAGES["imagesize"], *_SIZES)]
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
