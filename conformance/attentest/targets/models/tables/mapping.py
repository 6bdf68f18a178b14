"""The parameter map of a whole model, and what it has that the spec has no place for."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from attentest.targets.adapt.encoders.entering import is_norm
from attentest.targets.adapt.parameters import FoundTable, find_table
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.reading import Unclear
from attentest.targets.models.inferring import Inferred, probe_of
from attentest.targets.models.limits import with_idle_norms
from attentest.targets.models.tables.norms_in_turn import demand_own_norms
from attentest.targets.models.tables.one_table import ONE_TABLE
from attentest.targets.models.trials import Building
from attentest.targets.single import in_precision_of
from attentest_spec.mapping import locate


class NormOfOneStack(Unclear):
    """A norm behind one of two stacks alone: the module `norm`."""

    def __init__(self, name: str, norm: str) -> None:
        super().__init__(
            f"{name} has a norm behind one of its stacks, {norm}, and none behind the other. "
            f"The spec has one behind both or behind none, and where layers norm their inputs, "
            f"one is missing: what they add up to is normed nowhere. Add it, or name the "
            f"classes of its parts, one by one."
        )
        self.norm = norm


def table_of(built: Building, inferred: Inferred, name: str) -> FoundTable:
    """Return the parameter map; Unclear where parameters have no place in it."""
    call = inferred.call.compiled()

    def build(sizes: Any) -> Any:
        model = built(sizes)
        model.pads, model.longest = (sizes.source_pad, sizes.target_pad), sizes.max_length
        return model

    with in_precision_of(doubled=built.doubled, widened_too=built.widened):
        found = find_table(build, "model", call)
    lost = [] if found.table else list(found.remarks)
    lost += [one for one in found.remarks if one.startswith(("Left over", "Nothing was found"))]
    if lost:
        if scalar := _norm_of_one_number(built, lost):
            raise Unclear(
                f"{name} has norms that train one number for all columns, such as {scalar}, and "
                f"the norms of this spec train one for each column: its other parts can be judged "
                f"one by one."
            )
        demand_own_norms(built, call, name)
        if norm := _norm_of_one_stack(built, lost):
            raise NormOfOneStack(name, norm)
        raise Unclear(
            f"{name} was read as a whole model, and its parameters could not be mapped: "
            f"{' '.join(dict.fromkeys(lost))} If an argument of the constructor was taken for "
            f"another ({built.expression}), say which is which with --argument SIZE=NAME; else "
            f"write the map by hand, in a backend as docs/how-to/add-an-implementation.md shows."
        )
    if _shares_norms_by_layer(built, found):
        raise Unclear(
            f"{name} has one norm for all sublayers of a layer, and this spec has one for each "
            f"sublayer, or one for a whole stack: name the classes of its parts, one by one."
        )
    if not _reads_first_row(built, found, call):
        of_length = "has tables of positions with more rows than its length"
        fixed = "has tables of positions with a fixed number of rows"
        place = "row behind the others" if built.rows is None else "first row"
        raise Unclear(
            f"{name} {of_length if built.rows is None else fixed}, and the first "
            f"position does not get the {place}: write a backend by hand, as "
            f"docs/how-to/add-an-implementation.md shows."
        )
    return with_idle_norms(built, _tied_by_size(built, found), call, name)


def _tied_by_size(built: Building, found: FoundTable) -> FoundTable:
    """Return `found` with the tables that are tied where both vocabularies have one size.

    A model may tie them there alone. It is judged with one size where they are one.
    """
    if "tying" not in found.choices or "target_vocabulary" not in built.known:
        return found
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    own = dict(model.named_parameters(remove_duplicate=False))
    parts = ("source_embedding", "target_embedding", "generator")
    source, target, generator = (
        own.get(locate(f"{one}.weight", found.table).name) for one in parts
    )
    if source is None or source is not target:
        return found
    tying = "all-three" if target is generator else "embeddings"
    return replace(found, choices={**found.choices, "tying": tying})


def _norm_of_one_number(built: Building, lost: list[str]) -> str:
    """Return a class of modules with nothing but single numbers, where no norm is found else."""
    if not any("norms were looked for, and there are 0" in one for one in lost):
        return ""
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    for module in model.modules():
        held = list(module.parameters(recurse=False))
        if held and all(one.numel() == 1 for one in held):
            return type(module).__name__
    return ""


def _norm_of_one_stack(built: Building, lost: list[str]) -> str:
    """Return the norm whose parameters alone have no place, "" where there is none or more."""
    left = [one for one in lost if one.startswith("Left over")]
    names = (
        re.findall(r"[\w.]+\.\w+", left[0].partition(":")[2]) if len(lost) == 1 == len(left) else ()
    )
    paths = {one.rpartition(".")[0] for one in names}
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    held = dict(model.named_modules())
    return next((one for one in paths if one in held and is_norm(held[one])), "") * (
        len(paths) == 1
    )


def _shares_norms_by_layer(built: Building, found: FoundTable) -> bool:
    """Say whether the sublayers of a layer share a norm, and those of another have another.

    One norm may have a name for each sublayer: no table of one row for all sublayers reads that.
    """
    model = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary)).model
    own = dict(model.named_parameters(remove_duplicate=False))

    def norm(number: int, sublayer: str) -> nn.Parameter | None:
        name = f"encoder.layers.{number}.{sublayer}_norm.gain"
        return own.get(locate(name, found.table).name)

    first = norm(0, "self_attention")
    if found.choices.get("norm_sharing") == "shared":
        return first is not norm(1, "self_attention")
    return first is not None and first is norm(0, "feed_forward")


def _reads_first_row(built: Building, found: FoundTable, call: Callable[..., Any]) -> bool:
    """Say whether the first position gets the row that the map says, where that is not the first.

    Numbers in the rows before it change nothing, and those in its row do.
    """
    first = int(found.choices.get("position_offset", 0))
    if not first and (built.rows is None or ONE_TABLE in built.said):
        return True
    probe = probe_of(built, DISTINCT.but(target_vocabulary=DISTINCT.source_vocabulary))
    own = probe.model.get_parameter(locate("source_positions.weight", found.table).name)
    table = own.data.reshape(-1, own.shape[-1])  # a view of its rows

    def moved(rows: slice) -> Any:
        before = table[rows].clone()
        table[rows] += torch.linspace(-1, 2, own.shape[-1], dtype=own.dtype)
        answer = probe.called(call, *probe.tokens)
        table[rows] = before
        return answer

    answers = [
        probe.called(call, *probe.tokens),
        moved(slice(first)),
        moved(slice(first, first + 1)),
    ]
    if not all(isinstance(one, torch.Tensor) for one in answers):
        return False
    return torch.equal(answers[0], answers[1]) and not torch.equal(answers[0], answers[2])
