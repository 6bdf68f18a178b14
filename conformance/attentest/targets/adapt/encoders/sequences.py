"""Layers whose signature shows that they take one sequence, and those that are named as stacks."""

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from attentest.targets.adapt.components import (
    component_guessed,
    component_named,
    part_named,
    squashed,
    words_of,
)
from attentest.targets.adapt.names import ROLES, SIZES, turns
from attentest.targets.signatures import constructor_arguments

_OF_ONE_LAYER = {"encoder": (1,), "decoder": (1, 2)}
"""The numbers of attentions that one layer of a stack holds."""

_ATTENTIONS = ("attention", "multi_head_attention")
"""The components that a block of attention is by its name."""

_MATRICES = 2
"""The number of matrices of a feed-forward network that no class makes."""

_MANY = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)
"""Code that makes a number of modules."""

_LISTS = ("modulelist", "moduledict", "clones", "getclones", "makelayers")
"""Containers of layers, and functions that make copies of one."""


def one_sequence(
    component: str, signature: inspect.Signature, free: Sequence[str]
) -> tuple[str, ...]:
    """Return the arguments of `free` that are query, key and value, where all must be given.

    () for a component that is no layer of an encoder, and where one of the three is not named.
    """
    if component != "encoder_layer":
        return ()
    own = {squashed(one): one for one in free}
    found = [
        next((own[name] for name in ROLES[role] if name in own), "")
        for role in ("query", "key", "value")
    ]
    required = inspect.Parameter.empty
    is_asked = all(one and signature.parameters[one].default is required for one in found)
    return tuple(found) if is_asked else ()


def one_memory(
    component: str,
    signature: inspect.Signature,
    free: Sequence[str],
    settled: Mapping[str, str],
) -> tuple[str, ...]:
    """Return the arguments of `free` that are key and value of a layer of a decoder.

    Both must be given; () for another component, where an argument is named as the memory, and
    where no sequence of the decoder is named. What is `settled` has one of the two as the memory,
    if any, and none as something else.
    """
    own = {squashed(one): one for one in free}
    if component != "decoder_layer" or not own.keys().isdisjoint(ROLES["memory"]):
        return ()
    roles = ("key", "value")
    found = [next((own[name] for name in ROLES[one] if name in own), "") for one in roles]
    empty = inspect.Parameter.empty
    is_asked = all(one and signature.parameters[one].default is empty for one in found)
    others = [name for name, one in own.items() if one not in found and "mask" not in name]
    is_next = bool(others) and others[0] in (*ROLES["x"], *ROLES["query"])
    fits = all((role == "memory") == (one in found) for role, one in settled.items())
    return tuple(found) if is_asked and is_next and fits else ()


def is_of_one_text(signature: inspect.Signature, thing: Any) -> bool:
    """Say whether a decoder layer is one of a decoder-only model, and takes no memory.

    It needs one sequence alone next to rotary positions, which only such layers are given, or is
    given nothing but masks besides, and holds the parts of a layer with one attention.
    """
    own = {squashed(name): one for name, one in signature.parameters.items()}
    empty = inspect.Parameter.empty
    needed = [name for name, one in own.items() if one.default is empty and "mask" not in name]
    turning = [name for name in needed if turns(name)]
    alone = len(needed) == len(turning) + 1 and not own.keys() & {*ROLES["memory"]}
    if turning or not alone:
        return alone
    masked = all("mask" in name for name in own if name not in needed)
    return masked and bool(own.keys() & {*ROLES["x"]}) and _attentions(thing) == 1


def _attentions(thing: Any) -> int:
    """Return how many attentions the constructor of a class makes or is given."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing.__init__)))
    except (OSError, SyntaxError, TypeError):
        return 0
    called = [_name(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)]
    given = [part_named(own) for own in constructor_arguments(thing)]
    held = [component_named(one, heads=True) or component_guessed(one) for one in called]
    return [*held, *given].count("multi_head_attention")


def as_layer(component: str, thing: Any, name: str = "") -> str:
    """Return the layer that the class `thing` is where its name says a stack: "Encoder" for one.

    Its constructor takes no number of layers, repeats nothing and makes the attentions of one. So
    it is with a block or layer of attention, by its `name`, that makes a network and norms besides.
    """
    if not inspect.isclass(thing):
        return component
    is_block = component in _ATTENTIONS and words_of(name)[-1:] in (["block"], ["layer"])
    if component not in _OF_ONE_LAYER and not is_block:
        return component
    if any(squashed(own) in SIZES["layers"] for own in constructor_arguments(thing)):
        return component
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(thing.__init__)))
    except (OSError, SyntaxError, TypeError):
        return component
    nodes = list(ast.walk(tree))
    called = [_name(one.func) for one in nodes if isinstance(one, ast.Call)]
    if any(isinstance(one, _MANY) for one in nodes) or {*map(squashed, called)} & {*_LISTS}:
        return component
    held = [component_named(one, heads=True) or component_guessed(one) for one in called]
    attentions = held.count("multi_head_attention")
    feeds = "feed_forward" in held or called.count("Linear") == _MATRICES
    if is_block:
        norms = held.count("layer_norm") + held.count("rms_norm")
        is_one = attentions == 1 and feeds and norms > 1
        return "encoder_layer" if is_one else component
    is_one = attentions in _OF_ONE_LAYER[component]
    return f"{component}_layer" if is_one and feeds else component


def _name(called: ast.expr) -> str:
    """Return the last part of the name of what is called."""
    return str(getattr(called, "attr", getattr(called, "id", "")))
