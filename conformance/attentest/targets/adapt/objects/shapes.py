"""Arguments of norms that are shapes and no numbers: `LayerNorm([512])` norms the last axis."""

import ast
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import torch

from attentest.targets.adapt.fillings import NORMS, Filling
from attentest.targets.adapt.objects.settings import code_tree
from attentest_spec import Sizes


def of_the_last_axis(
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
