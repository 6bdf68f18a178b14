"""Recognises attention that does not attend to the other sequence that it takes.

Where one argument is key and value, attention is judged with one sequence for all three. Keys and
values that are computed from the queries, and not from that argument, have the same numbers there.
"""

import numpy as np
import torch

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.parameters.behaviour import Sample
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import places, read, reproduces
from attentest.targets.adapt.probing import undisturbed
from attentest_spec import Choices
from attentest_spec.setting import Floats
from attentest_spec.torch import to_array

_COMPONENT = "multi_head_attention"
_BATCH, _QUERIES, _KEYS = 2, 5, 7
_SECONDS = 1.0


def unattended(found: FoundTable, adapter: Adapter, choices: Choices) -> str:
    """Return the argument of keys and values that is not attended to, "" where it is.

    Says nothing of code whose numbers are not those of the formula with one sequence for all.
    """
    own = adapter.arguments.roles.get("key", "")
    other = own and own != adapter.arguments.roles.get("query")
    if adapter.component != _COMPONENT or not other or found.observed is None:
        return ""
    if list(adapter.arguments.joined) != [("value", "key")]:
        return ""
    rng = np.random.default_rng(0)
    width = found.observed.sizes.d_model
    query = rng.normal(size=(_BATCH, _QUERIES, width))
    if _fits(found, adapter, choices, query, query) is not True:
        return ""
    for keys in (_KEYS, _QUERIES):  # some code takes as many keys as queries
        answer = _fits(found, adapter, choices, query, rng.normal(size=(_BATCH, keys, width)))
        if answer is not None:
            return "" if answer else own
    return ""


def _fits(
    found: FoundTable, adapter: Adapter, choices: Choices, query: Floats, context: Floats
) -> bool | None:
    """Say whether the formula gives the output for a query and a context; None for no output."""
    assert found.observed is not None
    seen = found.observed
    inputs = query, context, context, None
    try:
        with undisturbed():
            result = adapter(seen.module, *(_tensor(one) for one in inputs))
    except Exception:  # code that a user wrote may raise anything
        return None
    output = to_array(result[0] if isinstance(result, tuple) else result)
    at = places(_COMPONENT, found.table, seen.run.own, seen.sizes, choices)
    held = read(at, seen.run.own, seen.sizes)
    sample = Sample(inputs, output)
    return reproduces(_COMPONENT, held, sample, seen.sizes, choices, Clock(_SECONDS))


def _tensor(value: Floats | None) -> torch.Tensor | None:
    return None if value is None else torch.from_numpy(value.copy())
