"""Memoised functions and tables of the code around a model: each model gets what is new.

A module that `functools.lru_cache` keeps is one for all models: where one of them is converted to
another precision, the others are. A table that a class keeps in a dictionary has the precision of
the first model. Models that are judged are converted all the time, and those that are trained are
not. The function needs nothing else of the suite: written adapters contain its source.
"""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

MEMOS = (
    "assumed that what {} keeps from one model to the next is meant for models of one precision: "
    "one that is converted converts what all others hold, so each model is built anew"
)


def fresh(thing: type) -> type:
    """Return `thing` after memoised functions and tables of the files of its folder forgot all."""
    folder = Path(str(sys.modules[thing.__module__].__file__)).parent
    for module in list(sys.modules.values()):
        file = Path(str(getattr(module, "__dict__", {}).get("__file__") or "/"))
        if folder in file.parents and "site-packages" not in file.parts:
            for one in list(vars(module).values()):
                own = inspect.isclass(one) and one.__module__ == module.__name__
                for table in [*vars(one).values()] if own else [one]:
                    kept = list(table.values()) if isinstance(table, dict) else []
                    flat = [
                        part for each in kept for part in (each if type(each) is tuple else [each])
                    ]
                    if flat and all(isinstance(part, Tensor | nn.Module) for part in flat):
                        table.clear()
                forget = getattr(one, "cache_clear", None) if inspect.isroutine(one) else None
                if callable(forget):
                    forget()
    return thing


FRESH_SOURCE = (
    "import inspect\nimport sys\nfrom pathlib import Path\n\nfrom torch import Tensor, nn\n\n\n"
    + inspect.getsource(fresh)
)
"""The function as code of its own, for a reproduction or a written adapter."""


def without_memos(
    thing: Callable[..., Any], expression: str, space: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
    """Return an expression that builds with nothing of an earlier model, its names, and doubts.

    It is `expression` itself where the files around `thing` memoise nothing of their own.
    """
    names = memoised(thing)
    call = re.match(r"\w+", expression)
    if not names or call is None or space.get(call[0]) is not thing:
        return expression, space, ()
    code = f"{fresh.__name__}({call[0]}){expression[call.end() :]}"
    return code, {**space, fresh.__name__: fresh}, (MEMOS.format(" and ".join(names)),)


def memoised(thing: Any) -> list[str]:
    """Return the names of memoised functions and tables in the files around the class `thing`."""
    home = sys.modules.get(getattr(thing, "__module__", ""))
    file = getattr(home, "__file__", None)
    if not file:
        return []
    found: dict[str, None] = {}
    for module in list(sys.modules.values()):
        other = Path(str(getattr(module, "__dict__", {}).get("__file__") or "/"))
        # Packages that are installed in a folder below are no code around the class.
        if Path(str(file)).parent in other.parents and "site-packages" not in other.parts:
            kept = [name for name, one in vars(module).items() if _is_memoised(one)]
            found |= dict.fromkeys([*kept, *_tables(module)])
    return list(found)


def _tables(module: ModuleType) -> Iterator[str]:
    """Yield the names of dictionaries that are empty in the code, and hold tensors by now."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, SyntaxError, TypeError):
        return
    classes = [one for one in tree.body if isinstance(one, ast.ClassDef)]
    owners: list[ast.Module | ast.ClassDef] = [tree, *classes]
    for owner in owners:
        name = getattr(owner, "name", "")
        held = vars(getattr(module, name, object)) if name else vars(module)
        for target, value in filter(None, map(_assigned, owner.body)):
            kept = held.get(target)
            if ast.unparse(value) in ("{}", "dict()") and isinstance(kept, dict) and kept:
                parts = [one if isinstance(one, tuple) else (one,) for one in kept.values()]
                if all(isinstance(one, Tensor | nn.Module) for each in parts for one in each):
                    yield f"{name}.{target}".lstrip(".")


def _assigned(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Return the one name that a statement assigns to, and its value; None for any other."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        target, value = statement.target, statement.value
    else:
        return None
    return (target.id, value) if isinstance(target, ast.Name) else None


def _is_memoised(one: Any) -> bool:
    if not inspect.isroutine(one):  # other objects may load, or need, what is not there
        return False
    return callable(getattr(one, "cache_clear", None)) and inspect.isfunction(inspect.unwrap(one))
