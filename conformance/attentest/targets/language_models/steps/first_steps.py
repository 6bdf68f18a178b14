"""First steps with a cache that a method of the model makes, where they raise."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from attentest.results.text import summary
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Unclear
from attentest.targets.language_models.caching import begun, caches_made, called
from attentest.targets.language_models.calling import Call


def demand_first_step(
    name: str, model: nn.Module, call: Call, space: Mapping[str, Any], argument: str
) -> None:
    """Raise Unclear where a method of `model` makes caches, and no first call with one answers.

    `argument` is the one that takes the cache, `space` are the names of the file.
    """
    failures = {}
    for start in caches_made(model, {}):
        try:
            with undisturbed():
                called(model, call, begun(model, start), space)
        except Exception as failure:  # code that a user wrote may raise anything
            failures[start] = summary(failure, 120)
        else:
            return
    for start, why in failures.items():
        raise Unclear(
            f"{name} was read as a decoder-only model that is continued from a cache "
            f"({argument}={start}), and its first call with one raised {why}. Either that is a "
            f"mistake, or it is called in another way: docs/how-to/add-an-implementation.md shows "
            f"the three functions that connect a cache by hand, and --give {argument}=None (in "
            f"Python: given={{'{argument}': None}}) judges the model without its cache."
        )
