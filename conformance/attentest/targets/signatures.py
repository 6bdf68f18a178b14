"""The arguments of constructors, taken as **keywords included, and the sizes that code reads."""

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator
from typing import Any

from torch import nn

from attentest_spec import Sizes


def constructor_arguments(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a constructor, those that it takes as **keywords included."""
    found = _signature(thing)
    keywords = [one.name for one in found.values() if one.kind is inspect.Parameter.VAR_KEYWORD]
    if keywords and inspect.isclass(thing):
        found = {**_keywords(thing, keywords[0]), **found}
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {one.name: one for one in found.values() if one.kind not in loose}


def _signature(thing: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(thing, eval_str=True).parameters)
    except Exception:  # an annotation may be imported for type checkers alone, or be none at all
        pass
    try:
        return dict(inspect.signature(thing).parameters)
    except ValueError:  # a class that inherits from `dict` has the constructor of that
        return {}


def returned(thing: Callable[..., Any]) -> Any:
    """Return the annotation of what `thing` returns, that of an empty signature for none."""
    try:
        return inspect.signature(thing, eval_str=True).return_annotation
    except Exception:  # an annotation may be imported for type checkers alone, or be none at all
        return inspect.signature(thing).return_annotation


def _keywords(thing: type, name: str) -> dict[str, inspect.Parameter]:
    """Return what the constructor of `thing` looks up in its **keywords, or hands on."""
    line = [one for one in thing.__mro__ if "__init__" in vars(one)]
    try:
        source = inspect.getsource(vars(line[0])["__init__"])
    except (OSError, TypeError):
        return {}
    found, always = {}, _read_always(source, name)
    for access, own, default, number in re.findall(
        rf"\b{name}(\[|\.get\(|\.pop\()\s*[\"'](\w+)[\"']\s*(,?)\s*(\d+(?=\s*\)))?", source
    ):
        optional = bool(default) or "get" in access or own not in always
        found[own] = inspect.Parameter(
            own,
            inspect.Parameter.KEYWORD_ONLY,
            default=(int(number) if number else None) if optional else inspect.Parameter.empty,
        )
    handed = re.search(rf"\.__init__\((?P<rest>[^)]*)\*\*\s*{name}\b", source)
    if handed and len(line) > 1:
        extended = constructor_arguments(line[1])
        given = [
            one.strip() for one in handed["rest"].split(",") if one.strip() not in ("", "self")
        ]
        placed = len([one for one in given if "=" not in one and not one.startswith("*")])
        named = {one.partition("=")[0].strip() for one in given if "=" in one}
        open_ = list(extended)[placed:]
        found |= {own: extended[own] for own in open_ if own not in named}
    # nn.Module takes no keyword: nothing is handed on to parts where all of them go there too.
    ends = bool(handed) and line[1:2] == [nn.Module]
    parts = {} if ends else _of_parts(thing, source, name)
    return {**parts, **_of_groups(source, name), **found}


def _of_groups(source: str, name: str) -> dict[str, inspect.Parameter]:
    """Return what is looked up in a part of the keywords `name` that a prefix of theirs says.

    That is `attn_dim_head` for `attn, rest = grouped("attn_", keywords)` and `attn["dim_head"]`.
    """
    found: dict[str, inspect.Parameter] = {}
    for one in ast.walk(_parsed(source)):
        match one:
            case ast.Assign(
                targets=[ast.Tuple(elts=[ast.Name(id=group), *_])],
                value=ast.Call(args=[ast.Constant(value=str(prefix)), ast.Name(id=held)]),
            ) if held == name and prefix.endswith("_"):
                for own in re.findall(
                    rf"\b{group}(?:\[|\.get\(|\.pop\()\s*[\"'](\w+)[\"']", source
                ):
                    kind = inspect.Parameter.KEYWORD_ONLY
                    found[prefix + own] = inspect.Parameter(prefix + own, kind, default=None)
    return found


def _of_parts(thing: type, source: str, name: str) -> dict[str, inspect.Parameter]:
    """Return the arguments of the classes of modules that the constructor hands `name` on to."""
    home = vars(sys.modules.get(thing.__module__, inspect))
    found: dict[str, inspect.Parameter] = {}
    for call in ast.walk(_parsed(source)):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        made = home.get(call.func.id)
        handed = any(one.arg is None and _is(one.value, name) for one in call.keywords)
        if not (handed and inspect.isclass(made) and issubclass(made, nn.Module)) or made is thing:
            continue
        placed, named = len(call.args), {one.arg for one in call.keywords}
        open_ = list(constructor_arguments(made).items())[placed:]
        found |= {own: one for own, one in open_ if own not in named}
    return found


def _parsed(source: str) -> ast.Module:
    """Return the function of `source` as a tree; not dedented: a string may go on in column 1."""
    return ast.parse(f"class _:\n{source}" if source[:1].isspace() else source)


def _read_always(source: str, name: str) -> frozenset[str]:
    """Return the keys of `name` that the function of `source` reads in every branch."""

    def outside(node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for field, held in ast.iter_fields(node):
            if isinstance(node, ast.If | ast.IfExp) and field != "test":
                continue
            for one in held if isinstance(held, list) else [held]:
                yield from outside(one) if isinstance(one, ast.AST) else ()

    nodes = list(outside(_parsed(source)))
    keys = [one.slice for one in nodes if isinstance(one, ast.Subscript) and _is(one.value, name)]
    keys += [
        one.args[0]
        for one in nodes
        if isinstance(one, ast.Call) and one.args and isinstance(one.func, ast.Attribute)
        if _is(one.func.value, name)
    ]
    return frozenset(str(one.value) for one in keys if isinstance(one, ast.Constant))


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def source_of(thing: Any, missing: str = "") -> str:
    """Return the source of `thing`, or `missing` where it cannot be read."""
    try:
        return inspect.getsource(thing)
    except (OSError, TypeError):
        return missing


def sizes_in(expression: str) -> frozenset[str]:
    """Return the names of the sizes that an expression in `sizes` reads."""
    names = [field.name for field in dataclasses.fields(Sizes)]
    return frozenset(name for name in names if f"sizes.{name}" in expression)


def without_forward(thing: Any) -> str:
    """Return the question about a module class that is called in no way, "" for everything else."""
    if not (inspect.isclass(thing) and issubclass(thing, nn.Module)):
        return ""
    if thing.forward is not nn.Module.forward or thing.__call__ is not nn.Module.__call__:
        return ""
    if all(callable(getattr(thing, one, None)) for one in ("encode", "decode")):
        return ""  # these two are its call
    name = thing.__name__
    return (
        f"{name} has no method forward, so that nothing says how it is called: other code calls "
        f"its parts. Name one of these, or write what it computes in a class of your own, and "
        f"judge that: `class Judged({name}): def forward(self, ..): ..`."
    )


def is_accelerator(name: str, default: Any) -> bool:
    """Say whether an argument is a device, and by default no CPU, where code is read."""
    is_device = name == "device" and default is not inspect.Parameter.empty
    return is_device and str(default).partition(":")[0] in ("cuda", "mps", "xpu")


_ATTENDS = re.compile(r"MultiheadAttention|Transformer\w*|scaled_dot_product_attention|baddbmm|bmm")
"""Names of torch in the code of a class that attends by itself."""


def held(thing: Any, names: Collection[str]) -> tuple[str, ...]:
    """Return those of the classes called `names` that the code of the class `thing` names.

    None for a class that inherits from another one than that of modules, or attends by itself.
    """
    if not inspect.isclass(thing) or thing.__bases__ != (nn.Module,):
        return ()
    tree = _tree(thing)
    found = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)}
    return () if _attends(tree, names) else tuple(sorted(found.intersection(names)))


def calls_given(thing: Any) -> bool:
    """Say whether a class that attends to nothing itself calls one module that it is given."""
    if not inspect.isclass(thing) or thing.__bases__ != (nn.Module,):
        return False
    tree = _tree(thing)
    code, own = ast.unparse(tree), constructor_arguments(thing)
    stored = re.findall(r"self\.(\w+) = (\w+)\n", code)
    given = [one for one, name in stored if name in own and f"self.{one}(" in code]
    return len(given) == 1 and not _attends(tree, ())


def _tree(thing: Any) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(thing)))
    except (OSError, SyntaxError, TypeError):
        return ast.Module([], [])


def _attends(tree: ast.AST, but: Collection[str]) -> bool:
    names = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)} - {*but}
    attributes = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
    return any(map(_ATTENDS.fullmatch, names | attributes))
