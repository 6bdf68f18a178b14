"""Code that is used on one device: it makes its mask on the CPU, or stays where it was built."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest_spec import Backend, Limits, Sizes
from attentest_spec.torch import TorchPart
from attentest_spec.torch.inventory import modules, tensors

B = TypeVar("B", bound=Any)  # a data class with limits, and sentences on what was inferred

SENTENCE = (
    "assumed that it is used on the CPU alone, where it makes its mask: if tokens may be on "
    "another device, this is a mistake, and --strict reports it"
)
KEPT = (
    "assumed that it stays on the device that its {}: {} is left there "
    "where it is moved later; if it may be moved, this is a mistake, and --strict reports it"
)
MADE = (
    "assumed that it is used on the device that its constructor is given as {}, where its calls "
    "make tensors: if its input may be on another one, this is a mistake, and --strict reports it"
)
MOVED = (
    "assumed that .cuda() in {} leaves what it moves where all else is, as torch is built without "
    "CUDA here: it is judged on the CPU alone"
)
_GIVEN, _OF_FILE = "constructor is given as", "file calls"
_MIXED = "on device cpu"
"""The words of the error of an operation on tensors of two devices, one of them the CPU."""
_HELD = ("model", "positional_encoding")
"""The components whose arrays have to follow them."""


def with_one_device(backend: B) -> B:
    """Return the inferred `backend`, limited to one device where it is used on that alone."""
    if not backend.limits.any_device:
        return backend
    said = SENTENCE if is_on_cpu_alone(backend) else _kept(backend)
    said = MOVED.format(owner) if (owner := _moving(backend)) else said
    if not said:
        return backend
    return limited(backend, replace(backend.limits, any_device=False), said)


def limited(backend: B, limits: Limits, said: str) -> B:
    """Return the inferred `backend` with `limits`, which are assumed for what `said` says."""
    head, *rest = backend.understood
    adapter: Any = getattr(backend, "adapter", None)
    written = {} if adapter is None else {"adapter": replace(adapter, limits=limits)}
    assumed, understood = (*backend.assumed, said), (head, said, *rest)
    return replace(backend, limits=limits, assumed=assumed, understood=understood, **written)


def is_on_cpu_alone(backend: Backend) -> bool:
    """Say whether the target's mask is made on the CPU whatever the device of the tokens is."""
    if "target_mask" not in backend.components:
        return False
    tokens = np.array([[3, 4, 5, 6], [4, 5, 0, 0]])
    try:
        with undisturbed():
            part = backend.build("target_mask", Sizes())
            return bool(part.placed((tokens, 0), "meta") == "cpu")
    except RuntimeError as failure:
        return _MIXED in str(failure)
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return False


def _kept(backend: Backend) -> str:
    """Return what is said of tensors that stay where a constructor is told to put them, or "".

    Each of them has to be that of a class whose constructor is given a device, and a call on
    another device has to fail by them: what calls move is left there by no one.
    """
    component = next((one for one in _HELD if one in backend.components), "")
    if not component:
        return ""
    try:
        with undisturbed():
            part: Any = backend.build(component, _sizes(backend))
            held = dict(_loose(part.module)) if isinstance(part, TorchPart) else {}
            made = "" if held or component == "model" else _device_of_calls(type(part.module))
            if not (made or held) or not all(held.values()) or _follows(part, component):
                return ""
    except Exception:  # code that a user wrote may raise anything; a clause will report it
        return ""
    if made:
        return MADE.format(made)
    name, device = next(iter(held.items()))
    return KEPT.format(device, name)


def _sizes(backend: Backend) -> Sizes:
    """Return sizes at which `backend` can be built."""
    same = SIZES.but(target_vocabulary=SIZES.source_vocabulary)
    return SIZES if backend.limits.own_vocabularies else same


def _moving(backend: Backend) -> str:
    """Return the first class of the modules of `backend` whose code calls `cuda`, "" for none.

    That is where torch is built without CUDA; a move under a condition is none.
    """
    if torch.version.cuda is not None:
        return ""
    for component in backend.components:
        try:
            with undisturbed():
                part: Any = backend.build(component, _sizes(backend))
            kinds = {type(one) for one in part.module.modules()}
            own = [one for one in kinds if not one.__module__.startswith("torch.")]
            names = sorted(one.__name__ for one in own if _calls_cuda(inspect.getsource(one)))
        except Exception:  # code that a user wrote may raise anything; a clause will report it
            continue
        if names:
            return names[0]
    return ""


def _calls_cuda(source: str) -> bool:
    tree = ast.parse(textwrap.dedent(source))
    guarded = [
        part
        for one in ast.walk(tree)
        if isinstance(one, ast.If | ast.IfExp)
        for part in ast.walk(one)
    ]
    free = {*ast.walk(tree)} - {*guarded}
    calls = (one.func for one in free if isinstance(one, ast.Call))
    return any(isinstance(one, ast.Attribute) and one.attr == "cuda" for one in calls)


def _loose(module: nn.Module) -> Iterator[tuple[str, str]]:
    """Yield the tensors that `module` holds as plain attributes, each with its device.

    What a module hands on to its parts is where these put it.
    """
    held = [
        (f"{path}.{name}".lstrip("."), _device_of(type(owner), name.partition(".")[0]), one)
        for path, owner in modules(module)
        for name, one in tensors(owner)
    ]
    placed = {id(one): device for _, device, one in held if device}
    yield from ((name, placed.get(id(one), "")) for name, _, one in held)


def _device_of(owner: type, attribute: str) -> str:
    """Return what says where an attribute is or is moved, in words, or "".

    It is an argument of the constructor, or else a device that the file of the class chooses.
    """
    taken = inspect.signature(owner).parameters
    device = next((one for one in taken if squashed(one) == "device"), "")
    whose = _GIVEN if device else _OF_FILE
    device = device or _device_of_file(owner)
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner))) if device else ast.Module([], [])
    statements = (one for one in ast.walk(tree) if isinstance(one, ast.Assign | ast.AnnAssign))
    made = [ast.unparse(one) for one in statements]
    is_placed = any(re.match(rf"self\.{attribute}\b.*=.*\bdevice\b", one, re.S) for one in made)
    kept = [found[1] for one in made if (found := re.fullmatch(rf"self\.(\w+) = {device}", one))]
    given = [f"self.{one}" for one in kept] + [device] * (whose == _OF_FILE)
    is_there = is_placed or any(_is_moved(tree, attribute, one) for one in given)
    return f"{whose} {device}" * is_there


def _device_of_calls(owner: type) -> str:
    """Return the argument of the constructor that says where calls make their tensors, or ""."""
    taken = inspect.signature(owner).parameters
    device = next((one for one in taken if squashed(one) == "device"), "")
    if not device:
        return ""
    source = inspect.getsource(owner)
    kept = re.findall(rf"self\.(\w+) = {device}\b", source)
    return device * any(re.search(rf"device=self\.{one}\b", source) for one in kept)


def _device_of_file(owner: type) -> str:
    """Return the name of the one device that the file of a class chooses, "" for none."""
    names: Mapping[str, Any] = getattr(vars(owner).get("__init__"), "__globals__", {})
    found = [
        name
        for name, value in names.items()
        if squashed(name) == "device" and isinstance(value, torch.device | str)
    ]
    return found[0] if len(found) == 1 else ""


def _is_moved(tree: ast.AST, attribute: str, kept: str) -> bool:
    """Say whether a method moves an attribute, or a part of it, to the device `kept`."""
    methods = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    for method in (one for one in methods if one.name != "__init__"):
        held = [rf"\bself\.{attribute}\b"]
        for one in ast.walk(method):
            if isinstance(one, ast.Assign) and re.search(held[0], ast.unparse(one.value)):
                held += [rf"\b{name.id}\b" for name in one.targets if isinstance(name, ast.Name)]
        calls = [one for one in ast.walk(method) if isinstance(one, ast.Call)]
        for call in (one for one in calls if getattr(one.func, "attr", "") == "to"):
            given = [*call.args, *(one.value for one in call.keywords)]
            to_kept = any(ast.unparse(one) == kept for one in given)
            if to_kept and any(re.search(name, ast.unparse(call.func)) for name in held):
                return True
    return False


def _follows(part: TorchPart, component: str) -> bool:
    """Say whether a call on another device answers there."""
    tokens = np.array([[1, 2, 4, 5], [2, 4, 5, 6]])
    vectors = np.random.default_rng(0).normal(size=(2, 4, SIZES.d_model))
    given = (tokens, tokens) if component == "model" else (vectors,)
    try:
        return part.placed(given, "meta") == "meta"
    except RuntimeError:
        return False
