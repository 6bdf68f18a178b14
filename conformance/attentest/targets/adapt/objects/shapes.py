"""Arguments that are shapes and no numbers: those of norms, and those of images and patches.

`LayerNorm([512])` norms the last axis.
"""

import ast
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import torch

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.encoders.image_names import IMAGES, SHAPES
from attentest.targets.adapt.fillings import NORMS, Filling, fixed
from attentest.targets.adapt.objects.settings import code_tree
from attentest.targets.adapt.probing import SIZES as PROBED
from attentest_spec import Sizes


def as_shape(
    thing: Callable[..., Any], parameter: inspect.Parameter, component: str, filling: Filling | None
) -> Filling | None:
    """Return `filling`, as a shape where no number is taken: of a norm, or of images."""
    if filling is not None and component == "encoder" and squashed(parameter.name) in SHAPES:
        return _of_images(thing, parameter, filling)
    return _of_the_last_axis(thing, parameter, component, filling)


def _of_images(
    thing: Callable[..., Any], parameter: inspect.Parameter, filling: Filling
) -> Filling:
    """Return `filling`, as the height and width, with the channels where code unpacks three."""
    number = filling.value(PROBED)
    axes = _axes(thing, parameter)
    if type(number) is not int or len(axes) not in (2, 3):
        return filling
    channels = IMAGES["imagechannels"]
    shape = [number] * len(axes)
    if len(axes) == 3:
        shape[-1 if axes[-1].startswith("c") else 0] = channels
    return fixed(tuple(shape))


def _axes(thing: Callable[..., Any], parameter: inspect.Parameter) -> list[str]:
    """Return the names that the code of a class gives the axes of an argument, "" for none.

    Its annotation says how many there are, or the code that unpacks it, or takes them by number.
    """
    own, tree = parameter.name, code_tree(thing)
    for one in ast.walk(tree):
        if isinstance(one, ast.Assign) and _names(one.value) == own:
            targets = one.targets[0]
            if isinstance(targets, ast.Tuple | ast.List):
                return [_names(axis).rpartition(".")[2].lower() for axis in targets.elts]
    if typing.get_origin(parameter.annotation) is tuple:
        said = [one for one in typing.get_args(parameter.annotation) if one is not ...]
        return [""] * len(said)
    taken = [
        one.slice.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Subscript) and _names(one.value) == own
        if isinstance(one.slice, ast.Constant) and isinstance(one.slice.value, int)
    ]
    return [""] * (max(taken) + 1) if taken and min(taken) >= 0 else []


def _names(value: ast.AST) -> str:
    """Return what `value` is, as an argument or an attribute of the same name."""
    return ast.unparse(value).removeprefix("self.")


def _of_the_last_axis(
    thing: Callable[..., Any], parameter: inspect.Parameter, component: str, filling: Filling | None
) -> Filling | None:
    """Return `filling`, as a shape of one axis where a norm takes no number by its code."""
    if filling is None or component not in NORMS or filling.settles != {"d_model"}:
        return filling
    if not (_is_sequence(parameter) or _is_counted(thing, parameter.name)):
        return filling
    if int in typing.get_args(parameter.annotation) or _is_wrapped(thing, parameter.name):
        return filling
    return Filling("(d_model,)", _last_axis, filling.settles, "(sizes.d_model,)")


def _last_axis(sizes: Sizes) -> tuple[int]:
    return (sizes.d_model,)


def _is_sequence(parameter: inspect.Parameter) -> bool:
    """Say whether an annotation allows sequences alone."""
    kind = parameter.annotation
    return (typing.get_origin(kind) or kind) in (tuple, list, torch.Size)


def _is_wrapped(thing: Callable[..., Any], own: str) -> bool:
    """Say whether the code of a class asks whether its argument `own` is a whole number."""
    calls = [one for one in ast.walk(code_tree(thing)) if isinstance(one, ast.Call)]
    return any(
        re.fullmatch(rf"isinstance\({own}, .*\b(int|Integral)\b.*\)", ast.unparse(one))
        for one in calls
    )


def _is_counted(thing: Callable[..., Any], own: str) -> bool:
    """Say whether the code of a class counts the axes of its argument `own`."""
    counted = (f"len({own})", f"len(self.{own})")
    calls = [one for one in ast.walk(code_tree(thing)) if isinstance(one, ast.Call)]
    return any(ast.unparse(one) in counted for one in calls)
