"""A norm behind one of two stacks whose layers norm their inputs: that of the other is missing.

The function needs nothing else of the suite: written adapters contain its source.
"""

import copy
import inspect
import re
from dataclasses import replace

from torch import nn

from attentest.targets.adapt.parameters import FoundTable
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.inferring import Inferred
from attentest.targets.models.tables.idle_norms import without
from attentest.targets.models.tables.mapping import NormOfOneStack, table_of
from attentest.targets.models.tables.memory_norms import with_plain_memory
from attentest.targets.models.trials import Building
from attentest.targets.whole import AdaptedWhole
from attentest_spec.mapping import locate

_SIDES = ("encoder", "decoder")


def with_idle_norm(model: nn.Module, norm: str, name: str) -> nn.Module:
    """Return `model` with a copy of its `norm` that nothing calls, under another `name`."""
    model.add_module(name, copy.deepcopy(model.get_submodule(norm)))
    return model


WITH_IDLE_NORM_SOURCE = "\n".join(
    ["import copy", "", "from torch import nn", "", "", inspect.getsource(with_idle_norm)]
)
"""The function as code, for a reproduction or a written adapter."""

_MISSING = (
    "no norm is behind the {}, and one is behind the {} ({}): what layers that norm their inputs "
    "add up to is normed nowhere there, and it is judged as a norm that is missing"
)


_NOT_COMPARED = (
    "the norm behind one stack alone, {}, is left out, and NOT compared: the memory, which layers "
    "norm, needs none"
)


def table_with_both_norms(
    built: Building, inferred: Inferred, name: str, reading: Reading
) -> tuple[Building, FoundTable]:
    """Return the parameter map, and `built` with a norm that one of its stacks lacks.

    Raises Unclear as :func:`table_of` does, and where no place of the norm gives a map.
    """
    try:
        return built, table_of(built, inferred, name)
    except NormOfOneStack as question:
        if f"{with_plain_memory.__name__}(" in built.expression:
            other = without(built, [question.norm], _NOT_COMPARED.format(question.norm))
            return other, table_of(other, inferred, name)
        for number, side in enumerate(() if reading.strict else _SIDES):
            own = f"norm_behind_the_{side}"
            given = f'"{question.norm}", "{own}"'
            other = replace(
                built,
                expression=f"{with_idle_norm.__name__}({built.expression}, {given})",
                space={**built.space, with_idle_norm.__name__: with_idle_norm},
            )
            try:
                found = table_of(other, inferred, name)
            except Unclear:
                continue
            held = locate(f"{side}.norm.gain", found.table).name
            if held.rpartition(".")[0] == own:
                said = _MISSING.format(side, _SIDES[1 - number], question.norm)
                rest = [one for one in found.remarks if not one.startswith(own)]
                return other, replace(found, remarks=(*rest, said))
        raise


def demand_normed_inputs(built: Building, made: AdaptedWhole, name: str) -> None:
    """Raise Unclear where a norm is behind one stack alone, and layers do not norm their inputs."""
    found = re.search(rf'\b{with_idle_norm.__name__}\(.*, "([\w.]+)", "\w+"\)$', built.expression)
    if found and made.choices.get("norm_placement") != "pre":
        raise NormOfOneStack(name, found[1])
