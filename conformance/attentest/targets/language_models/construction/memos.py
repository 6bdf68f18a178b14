"""Memoised functions of the code around a model: each model that is built gets what is new.

A module that `functools.lru_cache` keeps is one for all models: where one of them is converted to
another precision, the others are. Models that are judged are converted all the time, and those
that are trained are not. The function needs nothing else of the suite: written adapters contain
its source.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

MEMOS = (
    "assumed that what {} keeps from one model to the next is meant for models of one precision: "
    "one that is converted converts what all others hold, so each model is built anew"
)


def fresh(thing: type) -> type:
    """Return `thing` after the memoised functions of the files of its folder forgot all."""
    folder = Path(str(sys.modules[thing.__module__].__file__)).parent
    for module in list(sys.modules.values()):
        file = Path(str(getattr(module, "__dict__", {}).get("__file__") or "/"))
        if folder in file.parents and "site-packages" not in file.parts:
            for one in list(vars(module).values()):
                forget = getattr(one, "cache_clear", None) if inspect.isroutine(one) else None
                if callable(forget):
                    forget()
    return thing


FRESH_SOURCE = "import inspect\nimport sys\nfrom pathlib import Path\n\n\n" + inspect.getsource(
    fresh
)
"""The function as code of its own, for a reproduction or a written adapter."""


def without_memos(
    thing: Callable[..., Any], expression: str, space: Mapping[str, Any]
) -> tuple[str, Mapping[str, Any], tuple[str, ...]]:
    """Return an expression that builds with nothing of an earlier model, its names, and doubts.

    It is `expression` itself where the files around `thing` memoise no function of their own.
    """
    names = memoised(thing)
    call = re.match(r"\w+", expression)
    if not names or call is None or space.get(call[0]) is not thing:
        return expression, space, ()
    code = f"{fresh.__name__}({call[0]}){expression[call.end() :]}"
    return code, {**space, fresh.__name__: fresh}, (MEMOS.format(" and ".join(names)),)


def memoised(thing: Any) -> list[str]:
    """Return the names of memoised functions in the files of the folder of the class `thing`."""
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
            found |= dict.fromkeys(kept)
    return list(found)


def _is_memoised(one: Any) -> bool:
    if not inspect.isroutine(one):  # other objects may load, or need, what is not there
        return False
    return callable(getattr(one, "cache_clear", None)) and inspect.isfunction(inspect.unwrap(one))
