"""Frozen tables: embeddings that nothing is meant to train, positions that other code fills."""

import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest.targets.adapt.reading import Uncovered
from attentest.targets.signatures import source_of

_WAVES = re.compile(r"\bsin\(.*\bcos\(", re.DOTALL)


def demand_trained(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for an embedding of which no parameter is meant to be trained.

    All of them are built without gradients, and none gets one where it is asked for.
    """
    built = probe.built
    if adapter.component != "embedding" or not isinstance(built, nn.Module):
        return
    held = [*built.parameters()]
    if not held or any(one.requires_grad for one in held):
        return
    given = probe.given(adapter)
    with undisturbed(), torch.enable_grad():
        for one in held:
            one.requires_grad_(True)
        try:
            found = adapter(built, *given.values())
        except Exception:  # code that a user wrote may raise anything
            return
        finally:
            for one in held:
                one.requires_grad_(False)
    if isinstance(found, Tensor) and not found.requires_grad:
        raise Uncovered(
            f"{name} looks its rows up in a table that is not trained: it is built with "
            f"requires_grad=False, and its rows are detached. The table of an embedding is trained."
        )


def demand_filled(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Uncovered for positions in a frozen table that a method fills which nothing here calls.

    The constructor leaves random numbers there, and other code calls that method.
    """
    built = probe.built
    if adapter.component != "positional_encoding" or not isinstance(built, nn.Module):
        return
    held = [*built.parameters()]
    method = _uncalled_waves(type(built))
    if method and held and not any(one.requires_grad for one in held):
        raise Uncovered(
            f"{name} holds a frozen table of positions that its constructor does not fill: "
            f"{method}() computes sines, and other code calls it. A function that builds "
            f"{name} and fills its table is a target, too."
        )


def _uncalled_waves(thing: type[Any]) -> str:
    """Return the method of a class that computes sines and cosines, and that it never names."""
    own = source_of(thing)
    methods: dict[str, Any] = dict(inspect.getmembers(thing, inspect.isfunction))
    for name in sorted(methods.keys() - {"__init__", "forward"}):
        named = re.findall(rf"\b{name}\b", own)
        if len(named) == 1 and _WAVES.search(source_of(methods[name])):
            return name
    return ""
