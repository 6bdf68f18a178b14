"""Which object of a file is meant, where the user names none."""

import inspect
from types import ModuleType
from typing import Any

from attentest.targets.adapt.components import component_named
from attentest.targets.adapt.reading import Unclear


def only_candidate(target: str, module: ModuleType) -> str:
    """Return the one name in `module` that says a component; Unclear for none or several."""
    own = [name for name, thing in vars(module).items() if _written_there(name, thing, module)]
    found = [name for name in own if component_named(name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found or own) or "no function and no class"
    raise Unclear(
        f"{target} holds {listed}. Say which of them to judge with {target}:NAME"
        + ("." if found else ", and with --as COMPONENT what it is.")
    )


def _written_there(name: str, thing: Any, module: ModuleType) -> bool:
    """Say whether `thing` is a function or class that the file itself defines."""
    written = inspect.isfunction(thing) or inspect.isclass(thing)
    return written and not name.startswith("_") and thing.__module__ == module.__name__
