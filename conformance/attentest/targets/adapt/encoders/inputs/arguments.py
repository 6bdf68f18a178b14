"""The arguments of a call of an encoder or decoder that embeds its tokens: what each is."""

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.computed_values import MASKED_PLACES, OTHER_IDS
from attentest.targets.adapt.masks import is_length
from attentest.targets.adapt.names import ROLES
from attentest.targets.adapt.objects.settings import code_tree


def of_source(mask: str) -> bool:
    """Say whether the name of a mask says that it hides entries of the memory."""
    return any(one in mask for one in ("src", "source", "mem", "enc", "cross"))


def required(module: nn.Module) -> list[str]:
    """Return the arguments without a default that are neither masks, lengths nor other ids.

    Those that no code of the call reads are none of them either.
    """
    parameters = inspect.signature(module.forward).parameters.values()
    idle = unread(module)
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in loose
        and not hides(one.name)
        and squashed(one.name) not in OTHER_IDS
        and one.name not in idle
    ]


def unread(module: nn.Module) -> list[str]:
    """Return the arguments of a call whose names are nowhere in its code, masks apart.

    A mask that is not read is a mistake, and what may be one by its name is asked about.
    """
    own = list(inspect.signature(module.forward).parameters)
    function = getattr(module.forward, "__func__", module.forward)
    read = {one.id for one in ast.walk(code_tree(function)) if isinstance(one, ast.Name)}
    idle = [one for one in own if not (one in read or hides(one) or may_hide(one))]
    return [*idle, *of_loss(module.forward)] if read & {*own} else []


_LOSS = re.compile(r"(?i)loss|entropy|criterion|nll|crf")


def of_loss(forward: Callable[..., Any]) -> list[str]:
    """Return the arguments without a default that losses get, and nothing else reads.

    The first argument is none of them. Code may ask whether one is None.
    """
    unbound = getattr(forward, "__func__", forward)
    function = next(iter(getattr(code_tree(unbound), "body", [])), None)
    if not isinstance(function, ast.FunctionDef):
        return []
    inside: set[int] = set()
    for one in ast.walk(function):
        match one:
            case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called)):
                inside |= {*map(id, ast.walk(one))} if _LOSS.search(called) else set()
            case ast.Compare(comparators=[ast.Constant(value=None)]):
                inside |= {*map(id, ast.walk(one))}
    every = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
    own = [*inspect.signature(unbound).parameters.values()]
    needed = [one.name for one in own[2:] if one.default is one.empty and not hides(one.name)]
    read = {name: [id(one) in inside for one in every if one.id == name] for name in needed}
    return [name for name in needed if read[name] and all(read[name])]


def unread_lengths(module: nn.Module) -> list[str]:
    """Return the lengths with a default, by their names, that are nowhere in the code of a call."""
    function = getattr(module.forward, "__func__", module.forward)
    read = {one.id for one in ast.walk(code_tree(function)) if isinstance(one, ast.Name)}
    own = inspect.signature(module.forward).parameters.values()
    lengths = [one.name for one in own if is_length(one.name) and one.default is not one.empty]
    return [one for one in lengths if read and one not in read]


def without_effect(module: nn.Module) -> list[str]:
    """Return the masks and lengths with a default that a call cannot use, whatever they are."""
    return [*unread_lengths(module), *replaced_masks(getattr(module.forward, "__func__", None))]


def replaced_masks(forward: Callable[..., Any] | None) -> list[str]:
    """Return the masks with a default that `forward` gives another value before it reads them."""
    function = next(iter(getattr(code_tree(forward), "body", [])), None)
    if forward is None or not isinstance(function, ast.FunctionDef):
        return []
    own = inspect.signature(forward).parameters.values()
    masks = [one.name for one in own if hides(one.name) and one.default is not one.empty]
    return [one for one in masks if _is_replaced(function.body, one)]


def _is_replaced(body: list[ast.stmt], own: str) -> bool:
    """Say whether the first statement of `body` that names `own` gives it another value."""
    for statement in body:
        names = [one for one in ast.walk(statement) if isinstance(one, ast.Name) and one.id == own]
        if names:
            return isinstance(statement, ast.Assign) and statement.targets == names
    return False


def sequences(module: nn.Module, component: str) -> list[str]:
    """Return the inputs of a call: those that it must be given.

    Where a decoder must be given none, they are its tokens and its memory by their names.
    """
    needed = required(module)
    if needed or component != "decoder":
        return needed
    own = {squashed(one): one for one in inspect.signature(module.forward).parameters}
    found = [[own[one] for one in ROLES[role] if one in own] for role in ("tokens", "memory")]
    return [names[0] for names in found] if all(found) else []


def hides(argument: str) -> bool:
    """Say whether an argument is a mask or a number of positions by its name."""
    own = squashed(argument)
    return ("mask" in own and own not in MASKED_PLACES) or is_length(argument)


_MASKS = re.compile(r"attn|att|attentions?|attns?|pads?|paddings?|padded|valids?|keeps?|visible")


def may_hide(argument: str) -> bool:
    """Say whether an argument may be a mask by its name, which calls have to show."""
    return _MASKS.fullmatch(squashed(argument)) is not None
