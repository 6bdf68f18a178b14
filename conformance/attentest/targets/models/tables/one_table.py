"""One trained table of positions for both sides: a model is judged with zeros in its place.

The function needs nothing else of the suite: written adapters contain its source.
"""

import inspect
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt

import torch
from torch import Tensor, nn

from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.trials import Building
from attentest_spec.choices import Value
from attentest_spec.mapping import locate

ONE_TABLE = (
    "assumed that one trained table of positions for both sides is meant: this spec has one for "
    "each. Its rows are added by position, as a call shows, and all else is judged without them"
)
SHARED = (
    "{} has one trained table of positions for both sides, and this spec has one for each: name "
    "the classes of its parts, one by one."
)
NOT_ADDED = (
    "With its rows put into the embeddings the logits are others: they are not added to those of "
    "both sides in the order of the positions, or the logits are made with another table. Either "
    "may be a mistake."
)
_NEAR = 1e-9


def placeless(model: nn.Module, tables: Sequence[str]) -> nn.Module:
    """Return `model` with zeros in the place of the parameters `tables`, which are not trained."""
    for name in tables:
        path, _, own = name.rpartition(".")
        holder = model.get_submodule(path)
        if own in dict(holder.named_parameters(recurse=False)):
            rows = getattr(holder, own)
            delattr(holder, own)
            holder.register_buffer(own, torch.zeros_like(rows))
    return model


PLACELESS_SOURCE = "\n".join(
    ["from collections.abc import Sequence", "from torch import nn", "", "", ""]
) + inspect.getsource(placeless)
"""The function as code of its own, for a reproduction or a written adapter."""


def shared_positions(built: Building, found: FoundTable) -> list[str]:
    """Return all names of the one trained table that holds the positions of both sides."""
    try:
        places = [locate(f"{side}_positions.weight", found.table) for side in ("source", "target")]
    except KeyError:
        return []
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    own = dict(model.named_parameters(remove_duplicate=False))
    source, target = (own[place.name] for place in places)
    return [name for name, one in own.items() if one is source] if source is target else []


def without_rows(built: Building, tables: Sequence[str]) -> Building:
    """Return `built` with zeros in the place of the positions `tables`."""
    return replace(
        built,
        expression=f"{placeless.__name__}({built.expression}, {list(tables)})",
        space={**built.space, placeless.__name__: placeless},
        said=(*built.said, ONE_TABLE),
        doubts=(*built.doubts, ONE_TABLE),
    )


def adds_rows(
    built: Building, inferred: Inferred, found: FoundTable, table: str, *, is_scaled: bool
) -> bool:
    """Say whether the rows of `table` are added to the embeddings in the order of positions.

    Embeddings with these rows in them and a table of zeros have to give the same differences of
    logits then. `is_scaled` says that embeddings are multiplied by the root of the width.
    """
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    call, model = inferred.call.compiled(), probe.model
    source, target = torch.arange(3, 9)[None], torch.arange(9, 13)[None]
    before = probe.output(call, source, target)
    own = model.get_parameter(table)
    rows = own.detach().reshape(-1, own.shape[-1]).clone()
    scale = sqrt(rows.shape[-1]) if is_scaled else 1.0
    with undisturbed():
        own.zero_()
        for side, ids in (("source", source[0]), ("target", target[0])):
            place = locate(f"{side}_embedding.weight", found.table)
            embedding = model.get_parameter(place.name)
            embedding[ids] += rows[: len(ids)] / scale
    after = probe.output(call, source, target)
    if before is None or after is None:
        return False
    return bool((_contrasts(before) - _contrasts(after)).abs().max() < _NEAR)


def _contrasts(output: Tensor) -> Tensor:
    """Return differences of the columns of ids that occur in no sequence."""
    return output[..., 14:20] - output[..., 13:14]


def scale_beside_rows(
    whole: Building, inferred: Inferred, found: FoundTable, table: str
) -> dict[str, Value]:
    """Return the scale of embeddings beside which rows of the `table` of positions are added.

    That shows it where all other numbers are those of a mistake.
    """
    for name in ("sqrt-d", "none"):
        if adds_rows(whole, inferred, found, table, is_scaled=name == "sqrt-d"):
            return {"embedding_scale": name}
    return {}
