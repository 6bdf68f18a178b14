"""Kernels that torch does not see, as those of Triton: the memory they fill, the GPU they need."""

import ast
import difflib
import inspect
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.reading import Unclear
from attentest.targets.definitions import LEFT_OUT
from attentest_spec.torch.flops import OperationMode

_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "zeros", "zeros_like", "new_zeros")
"""Operations of torch that make memory for a kernel to fill."""


class KernelWatch(OperationMode):
    """Watches the operations of a call for numbers that no operation of torch has computed."""

    def __init__(self) -> None:
        """Begin with no memory."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._empty: dict[int, Tensor] = {}

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call `func`, and hand on what it is given, what it makes, and what kernels have filled.

        An operation that is not torch's own is a kernel too.
        """
        given = _tensors_of((args, kwargs))
        filled = [self._empty[_memory(one)] for one in given if _memory(one) in self._empty]
        if func._schema.is_mutable:
            for one in given:
                self._empty.pop(_memory(one), None)
        made = func(*args, **(kwargs or {}))
        if func._overloadpacket.__name__ in _EMPTY:
            for one in _tensors_of(made):
                if one.is_floating_point() and _memory(one):
                    self._empty[_memory(one)] = one.zero_()  # what is left there tells nothing
        elif func.namespace not in ("aten", "prims"):
            filled += _tensors_of(made)
        self.seen(func, given, _tensors_of(made))
        self.computed_by_kernels([one for one in filled if not one.is_meta and one.any()])
        return made

    def seen(self, func: Any, given: Sequence[Tensor], made: Sequence[Tensor]) -> None:
        """Note an operation, the tensors of any shape that it is given, and those that it makes."""

    def computed_by_kernels(self, numbers: Sequence[Tensor]) -> None:
        """Note tensors of any shape that a kernel has filled and an operation is given."""


def _tensors_of(tree: object) -> list[Tensor]:
    """Return the tensors of any shape in nested arguments or results."""
    return [one for one in tree_leaves(tree) if isinstance(one, Tensor)]


def _memory(tensor: Tensor) -> int:
    """Return where the numbers of a tensor lie, 0 for one that holds none."""
    return tensor.untyped_storage().data_ptr() if tensor.layout is torch.strided else 0


_OF_GPU = re.compile(r"\bcuda\b|nvidia|\bgpu\b|\btriton\b|active drivers", re.IGNORECASE)
"""Words of the errors of code that a GPU alone can run, called without one."""
_MISSING = "No module named"
"""The words of an error that no GPU would prevent."""


def demand_no_gpu(name: str, failure: str) -> None:
    """Raise Unclear where `failure` says that `name` needs a GPU: code is read on the CPU."""
    if _OF_GPU.search(failure) and _MISSING not in failure:
        raise Unclear(
            f"{name} needs a GPU, and code is read on the CPU: if it asks for one by name, write "
            f".to(device) with a device that it chooses; if its kernels are those of Triton, "
            f"set TRITON_INTERPRET=1 in the environment, which runs them there, and add "
            f"--write-adapter FILE to judge them on the GPU afterwards, by `attentest run "
            f"FILE:backend --device cuda`; else write a backend, and judge that so. It failed with "
            f"{failure}."
        )


_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_ABSENT = re.compile(r"AttributeError: '(\w+)' object has no attribute '(\w+)'")

_BEFORE_MODULE = "before Module.__init__() call"


def demand_runnable(name: str, failure: str, thing: Any = None) -> None:
    """Raise Unclear where `failure` says that no value of an argument could prevent it.

    The code needs a GPU, or it reads a name that importing its file does not define, or an
    attribute that no code of the file of `thing` sets.
    """
    demand_no_gpu(name, failure)
    if undefined := _UNDEFINED.search(failure):
        if said := _never_defined(thing, undefined[1]):
            raise Unclear(f"{name} cannot run: {said}. It failed with {failure}.")
        if said := _left_undefined(thing, undefined[1]):
            raise Unclear(f"{name} cannot run here: {said}. It failed with {failure}.")
        raise Unclear(
            f"{name} reads {undefined[1]}, which is not defined where its file is imported: what "
            f'follows `if __name__ == "__main__":` is not run then. Define it at the top of the '
            f"file, or import it there. It failed with {failure}."
        )
    if _BEFORE_MODULE in failure:
        raise Unclear(
            f"{name} cannot run: a constructor sets parts or parameters before it calls "
            f"super().__init__(), or does not call it. It failed with {failure}."
        )
    if (absent := _ABSENT.search(failure)) and (said := _never_set(thing, *absent.groups())):
        raise Unclear(f"{name} cannot run: {said}. It failed with {failure}.")


def _never_set(thing: Any, owner: str, attribute: str) -> str:
    """Return where the class `owner` reads an attribute that its file sets nowhere, "" for none."""
    tree = _tree(thing)
    classes = [one for one in ast.walk(tree) if isinstance(one, ast.ClassDef)]
    own = [node for one in classes if one.name == owner for node in ast.walk(one)]
    reads = [one for one in own if isinstance(one, ast.Attribute) and one.attr == attribute]
    if not reads or attribute in _names_set(list(ast.walk(tree))):
        return ""
    near = _near(attribute, _names_set(own))
    return f"line {reads[0].lineno} reads self.{attribute}, which no code of its file sets{near}"


def _never_defined(thing: Any, missing: str) -> str:
    """Return where the file of `thing` reads a name that no code of it defines, "" for none."""
    tree = _tree(thing)
    nodes = list(ast.walk(tree))
    imported = {one.asname or one.name for one in nodes if isinstance(one, ast.alias)}
    reads = [one for one in nodes if isinstance(one, ast.Name) and one.id == missing]
    held = imported | _names_set(nodes)
    if not reads or {missing, "*"} & held:
        return ""
    return f"line {reads[0].lineno} reads {missing}, which no code of its file defines" + _near(
        missing, imported | set(vars(sys.modules[thing.__module__]))
    )


def _left_undefined(thing: Any, missing: str) -> str:
    """Return which statement of a file that could not be run defines a name, "" for none."""
    left = vars(sys.modules.get(getattr(thing, "__module__", ""), object)).get(LEFT_OUT, {})
    for node in getattr(_tree(thing), "body", ()):
        inside = list(ast.walk(node))
        aliases = {one.asname or one.name for one in inside if isinstance(one, ast.alias)}
        if node.lineno in left and missing in aliases | _names_set(inside):
            why = left[node.lineno] or next(filter(None, left.values()), "it is not run")
            return f"line {node.lineno}, which defines {missing}, is left out ({why})"
        if node.lineno in left and "*" in aliases and left[node.lineno]:
            return (
                f"line {node.lineno}, which imports every name of another file, is left out "
                f"({left[node.lineno]}), and no other line of its file defines {missing}"
            )
    return ""


def _near(missing: str, known: Collection[str]) -> str:
    """Return a clause on the name of those `known` that is nearest to one that is missing."""
    near = difflib.get_close_matches(missing, sorted(known), 1)
    return f"; if {near[0]} is meant, this is a mistake" if near else ""


def _tree(thing: Any) -> ast.AST:
    """Return the code of the file of `thing`, nothing where it cannot be read."""
    try:
        return ast.parse(inspect.getsource(sys.modules[thing.__module__]))
    except (AttributeError, KeyError, OSError, TypeError, SyntaxError):
        return ast.Module([], [])


def _names_set(nodes: Sequence[ast.AST]) -> set[str]:
    """Return the names that code may set: as attributes, in a class, or by a string."""
    found = {one.value for one in nodes if isinstance(one, ast.Constant)}
    found |= {one.name for one in nodes if isinstance(one, ast.FunctionDef | ast.ClassDef)}
    found |= {one.attr for one in nodes if isinstance(one, ast.Attribute) and _is_stored(one)}
    found |= {one.id for one in nodes if isinstance(one, ast.Name) and _is_stored(one)}
    return {one for one in found if isinstance(one, str)}


def _is_stored(node: ast.Attribute | ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
