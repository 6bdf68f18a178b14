"""Layers that are called with value, key and query: which argument is the query, by numbers too."""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import replace

from torch import Tensor

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.arguments import Arguments
from attentest.targets.adapt.probing import Probe
from attentest.targets.adapt.reading import Unclear

_SEQUENCE = (
    "assumed that {} are one sequence, as a layer of an encoder is called: it is judged with x as "
    "each of them"
)
_MEMORY = (
    "assumed that {} are one memory, as a layer of a decoder is called: it is judged with the "
    "memory as each of them"
)
_CLOSE = 1e-6
"""Largest change of an output, as a part of it, where nothing that it depends on was changed."""


def said_of(carried: Arguments, signature: inspect.Signature) -> Iterator[str]:
    """Yield what is assumed of arguments that get one input."""
    role = next(iter(carried.repeated.values()), "")
    if role:
        every = [one for one in signature.parameters if one in carried.repeated]
        words = _MEMORY if role == "memory" else _SEQUENCE
        yield words.format(", ".join([*every, carried.roles[role]]))


def demand_query(name: str, probe: Probe, adapter: Adapter) -> None:
    """Raise Unclear where the numbers show that another argument than the named one is the query.

    A row of the query has an effect on the same row of the output alone; one of key or value has an
    effect on all rows. Where no argument is such, or several are, nothing is shown.
    """
    repeated = adapter.arguments.repeated
    if "x" not in repeated.values():
        return
    query = adapter.arguments.roles["x"]
    local = [own for own in (query, *repeated) if _is_local(probe, adapter, own)]
    if len(local) == 1 and local[0] != query:
        raise Unclear(
            f"By its names {query} is the query of {name}, and a probing call shows that it is "
            f"{local[0]}: a row of that has an effect on the same row of the output alone. It may "
            f"be called in another order than its signature says, or this is a mistake. "
            f"--argument x={query} (in Python: arguments={{'x': {query!r}}}) judges it as it is."
        )


def _is_local(probe: Probe, adapter: Adapter, own: str) -> bool:
    """Say whether a row of the argument `own` has an effect on one row of the output alone."""
    x: Tensor = probe.given(adapter)["x"]
    moved = x.clone()
    moved[:, 0] += 1.0
    names = [adapter.arguments.roles["x"], *adapter.arguments.repeated]
    alike = dict.fromkeys(names, x)
    before = _called(probe, adapter, alike)
    after = _called(probe, adapter, {**alike, own: moved})
    if before is None or after is None or before.shape != x.shape:
        return False
    change = (after - before).abs().amax(dim=-1)
    least = _CLOSE * before.abs().max()
    return bool((change[:, 1:] <= least).all() and (change[:, 0] > least).all())


def _called(probe: Probe, adapter: Adapter, values: Mapping[str, Tensor]) -> Tensor | None:
    """Return the output for other `values` of the arguments, None where there is none."""
    query = adapter.arguments.roles["x"]
    entered = {own: adapter.layout.enter(values[own])[0] for own in values if own != query}
    fixed = {**adapter.arguments.fixed, **entered}
    carried = replace(adapter.arguments, repeated={}, fixed=fixed)
    given = {**probe.given(adapter), "x": values[query]}
    output = probe.called(replace(adapter, arguments=carried), given)
    return output if isinstance(output, Tensor) else None
