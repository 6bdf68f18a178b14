"""The one line that says how code was understood, where all of it was inferred surely."""

from collections.abc import Iterable, Mapping

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code

MOST = 6
"""The largest number of parameters that are named; more are counted."""


def summary(code: Code, adapter: Adapter, parameters: Mapping[str, object] | None = None) -> str:
    """Return how `code` is built and called, its mask and its parameters, in one line."""
    built = ""
    if code.construction is not None:
        built = f"({', '.join(code.construction.fillings)})"
    called = ", ".join(pairs(adapter.arguments.roles.items()))
    masks = dict.fromkeys(one.words.partition(";")[0] for one in adapter.styles.values())
    parts = [f"{code.name}{built} called ({called})", *masks, *named(parameters or {})]
    return "; ".join(parts)


def pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return each name with what it is called here, once where both are the same."""
    return [own if own == name else f"{name}={own}" for name, own in items]


def named(parameters: Mapping[str, object]) -> list[str]:
    """Return a phrase with the parameters, as far as they are few and have names; none for none."""
    own = [one for one in parameters.values() if isinstance(one, str)]
    if not parameters:
        return []
    few = len(own) == len(parameters) <= MOST
    return [f"weights {', '.join(own)}" if few else f"{len(parameters)} parameters by name"]
