"""Files that name CUDA as the device of their tensors, which torch may be built without."""

import ast
import sys
from collections.abc import Iterator
from types import ModuleType

NAMES_CUDA = "__names_cuda__"
"""The name in a module of the first line that names CUDA as a device."""

_MOVING = ("to", "device", "set_default_device")
"""Calls whose first argument may be a device."""


def note_named_cuda(module: ModuleType, source: bytes) -> None:
    """Let CUDA be where all else is if the `source` of a module names it, and torch lacks it."""
    if b"cuda" not in source:
        return
    try:
        found = [int(getattr(one, "lineno", 0)) for one in _always(ast.parse(source))]
        if not found:
            return
        import torch

        from attentest_spec.torch.missing_cuda import ignore_names
    except (SyntaxError, ValueError, ImportError):
        return
    if torch.version.cuda is None:
        ignore_names()
        vars(module)[NAMES_CUDA] = min(found)


def _always(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of code that name CUDA as a device, under no condition."""
    if _names_cuda(node):
        yield node
    elif not isinstance(node, ast.If | ast.IfExp | ast.Try | ast.Match):
        for one in ast.iter_child_nodes(node):
            yield from _always(one)


def _names_cuda(node: ast.AST) -> bool:
    """Say whether a device is written out as that of CUDA."""
    match node:
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=args):
            given = [one.value for one in node.keywords if one.arg == "device"]
            return any(map(_is_cuda, [*given, *(args[:1] if called in _MOVING else ())]))
        case ast.Assign(targets=targets, value=value):
            return _is_cuda(value) and any(map(_is_device, targets))
        case ast.AnnAssign(target=target, value=value):
            return _is_cuda(value) and _is_device(target)
    return False


def _is_cuda(node: ast.expr | None) -> bool:
    value = node.value if isinstance(node, ast.Constant) else ""
    return isinstance(value, str) and value.partition(":")[0] == "cuda"


def _is_device(node: ast.expr) -> bool:
    return "device" in ast.unparse(node).rpartition(".")[2].lower()


def named_cuda(module: ModuleType) -> ModuleType | None:
    """Return the module which names CUDA: `module`, or another of its folder; None for none."""
    top = module.__name__.partition(".")[0]
    near = [one for name, one in list(sys.modules.items()) if name.partition(".")[0] == top]
    named = (one for one in (module, *near) if NAMES_CUDA in getattr(one, "__dict__", {}))
    return next(named, None)


def on_cpu(module: ModuleType) -> list[str]:
    """Return what is assumed of a file that names CUDA, or imports one which does."""
    named = named_cuda(module)
    if named is None:
        return []
    line = vars(named)[NAMES_CUDA]
    file = "its file" if named is module else str(named.__file__).rpartition("/")[2]
    return [
        f"assumed that all is on one device: line {line} of {file} names cuda, and torch is built "
        f"without CUDA here: it is judged on the CPU alone"
    ]
