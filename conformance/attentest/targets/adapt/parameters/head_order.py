"""The channels of each head, by rotating them: the formula of attention is not used.

Scores are products of a head's query and key, so that one rotation of both changes nothing, however
they are scaled, masked and normalised; and the output projection can undo a rotation of a head's
value. A rotation of channels that belong to several heads changes the output.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, product
from typing import Any

import numpy as np
import torch
from torch import nn

from attentest.targets.adapt.parameters.behaviour import Run, observe
from attentest.targets.adapt.parameters.layers import Part
from attentest.targets.adapt.parameters.leaves import PROJECTIONS
from attentest.targets.adapt.parameters.settled import settled
from attentest.targets.adapt.parameters.storage import Entries, as_place
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.parameters.trials.trial import places, read
from attentest_spec import Choices, Sizes
from attentest_spec.mapping import Place, Table
from attentest_spec.setting import Array, Floats
from attentest_spec.torch import to_array

MOST = 24
"""The largest number of tables whose heads are rotated."""

_QUERY = "query.weight"


def attention_tables(parts: Sequence[Part]) -> Iterator[list[Entries]]:
    """Yield one table for every part: all that each attention may have, the first of the others."""
    options = (
        part.tables if part.component == "multi_head_attention" else part.tables[:1]
        for part in parts
    )
    yield from map(list, islice(product(*options), MOST))


def roles(table: Table) -> Mapping[str, tuple[str, tuple[int, int] | None]]:
    """Return which parameters are the projections, however they are stored.

    A rotation shows how, and not which of them is the query and which the key.
    """
    held = {name: as_place(entry) for name, entry in table.items()}
    return {
        name.removesuffix(".weight"): (place.name.removesuffix(".weight"), place.part)
        for name, place in held.items()
        if not set(PROJECTIONS).isdisjoint(name.split(".")) and not name.endswith(".bias")
    }


def narrowed(parts: Sequence[Part], tables: Sequence[Entries]) -> list[Part]:
    """Return `parts` with its one of `tables` for every attention, and those of other roles."""
    return [
        replace(part, tables=[table, *(one for one in part.tables if roles(one) != roles(table))])
        if part.component == "multi_head_attention"
        else part
        for part, table in zip(parts, tables, strict=True)
    ]


def rotates(
    module: nn.Module,
    component: str,
    call: Callable[..., Any],
    table: Table,
    run: Run,
    sizes: Sizes,
) -> bool:
    """Say whether the output stays where the channels of each head by `table` are rotated.

    False where it does not, or where nothing can be rotated. `run` was observed of `module`, whose
    parameters are what they were in the end.
    """
    if sizes.heads == 1 or not run.samples:
        return False
    choices = Choices.of(settled(component, table, run.own, sizes))
    at = places(component, table, run.own, sizes, choices)
    starts = [name.removesuffix(_QUERY) for name in at if name.endswith(_QUERY)]
    given = {name: np.array(value) for name, value in read(at, run.own, sizes).items()}
    rng = np.random.default_rng(1)
    changed: dict[str, Floats] = {}
    for start in starts:
        own = {
            name.removeprefix(start): one for name, one in given.items() if name.startswith(start)
        }
        rotated = _rotated(own, sizes, rng)
        changed |= {f"{start}{name}": one for name, one in rotated.items()}
        if not rotated:
            return False
    sample = run.samples[0]
    with _written(module, at, changed, sizes):
        try:
            result = call(module, *(_tensor(one) for one in sample.inputs))
        except Exception:  # code that a user wrote may raise anything
            return False
        output = result[0] if isinstance(result, tuple | list) else result
        after = to_array(output).copy() if isinstance(output, torch.Tensor) else np.zeros(0)
    if not starts or after.shape != sample.output.shape:
        return False
    return bool(np.abs(after - sample.output).max() <= LOOSE * np.abs(sample.output).max())


def rotates_at(
    build: Callable[[Sizes], nn.Module],
    component: str,
    call: Callable[..., Any],
    table: Table,
    sizes: Sizes,
) -> bool:
    """Say the same of a module that is built at `sizes`."""
    try:
        with torch.random.fork_rng(devices=[]):
            module = build(sizes)
        run = observe(module, call, component, sizes)
        return rotates(module, component, call, table, run, sizes)
    except Exception:  # code that a user wrote may raise anything
        return False


def _rotated(
    own: Mapping[str, Floats], sizes: Sizes, rng: np.random.Generator
) -> dict[str, Floats]:
    """Return the parameters of an attention with its heads rotated; {} where it has none."""
    weights = [own.get(f"{name}.weight") for name in ("query", "key", "value", "output")]
    if any(one is None or one.ndim != 2 for one in weights):
        return {}
    rows = {len(one) for one in weights[:3] if one is not None} | {own["output.weight"].shape[1]}
    if len(rows) != 1 or min(rows) % sizes.heads or min(rows) < 2 * sizes.heads:
        return {}
    width = min(rows) // sizes.heads
    turns = [
        np.stack([np.linalg.qr(rng.normal(size=(width, width)))[0] for _ in range(sizes.heads)])
        for _ in range(2)
    ]
    found = {}
    for name, turn in (("query", turns[0]), ("key", turns[0]), ("value", turns[1])):
        for leaf in ("weight", "bias"):
            if (one := own.get(f"{name}.{leaf}")) is not None:
                found[f"{name}.{leaf}"] = _turned(turn, one)
    found["output.weight"] = _turned(turns[1], own["output.weight"].T).T
    return found


def _turned(turn: Floats, rows: Floats) -> Floats:
    """Return `rows` (H E, ..) with those of each head multiplied by its matrix of `turn`."""
    heads = rows.reshape(*turn.shape[:2], -1)
    return np.asarray(np.einsum("hij,hjx->hix", turn, heads).reshape(rows.shape))


@contextmanager
def _written(
    module: nn.Module, at: Mapping[str, Place], values: Mapping[str, Floats], sizes: Sizes
) -> Iterator[None]:
    """Write `values` to their places in `module`, and in the end what was there before."""
    own = dict(module.named_parameters(remove_duplicate=False))
    before = {name: one.detach().clone() for name, one in own.items()}
    try:
        with torch.no_grad():
            for name, value in values.items():
                at[name].write(own, torch.from_numpy(value.copy()), sizes.heads)
        yield
    finally:
        with torch.no_grad():
            for name, one in own.items():
                one.copy_(before[name])


def _tensor(value: Array | None) -> torch.Tensor | None:
    return None if value is None else torch.from_numpy(np.array(value))
