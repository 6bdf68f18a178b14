"""The parameter map of code, of what it holds and of what its component should have."""

from dataclasses import replace

import torch
from torch import nn

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.parameters.constant import holds_constants
from attentest.targets.adapt.parameters.found import FoundTable, find_table
from attentest.targets.adapt.parameters.storage import with_fewer_key_heads
from attentest.targets.adapt.probing import SIZES, Probe
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.unspecified.parameters import demand_use_of_inherited, demand_weights
from attentest.targets.adapt.unspecified.windows import with_window
from attentest.targets.epsilons import formula_without_weights, norm_of
from attentest_spec import Choices
from attentest_spec.parameters import shapes


def table_of_code(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> FoundTable:
    """Return the parameter map of code that has parameters, or should have some.

    It holds the choices that arguments of the code say, too: of key heads, and of windows.
    """
    found = with_window(code, probe, adapter, _found(code, probe, adapter, reading), reading)
    if "kv_heads" not in code.known:
        return found
    choices = {**found.choices, "key_heads": "fewer"}  # wrong numbers show it no more
    return replace(found, table=with_fewer_key_heads(found.table), choices=choices)


def _found(code: Code, probe: Probe, adapter: Adapter, reading: Reading) -> FoundTable:
    needed = shapes(code.component, SIZES, Choices())
    held = isinstance(probe.built, nn.Module) and any(True for _ in probe.built.parameters())
    if code.component == "rms_norm" and not held:
        return FoundTable(choices={"rms_weight": "none"})
    if code.component == "layer_norm" and not isinstance(probe.built, nn.Module):
        norm = norm_of(probe, adapter, FoundTable(), Choices())
        return FoundTable(choices=formula_without_weights(norm))
    if not code.is_module or not (needed or held):
        return FoundTable()
    if holds_constants(probe, adapter, code.build):
        return FoundTable()
    demand_weights(code.name, code.component, probe.built)
    demand_use_of_inherited(code.name, code.component, probe, adapter)
    is_single = code.construction is not None and code.construction.has_one_layer
    wanted = DISTINCT.but(layers=1) if is_single else DISTINCT
    return find_table(code.build, code.component, adapter, reading.parameters, wanted)


def shapes_held(probe: Probe) -> dict[str, torch.Size]:
    """Return the shapes of the parameters of the module that is probed, by their names."""
    held = probe.built if isinstance(probe.built, nn.Module) else nn.Module()
    return {name: one.shape for name, one in held.named_parameters()}
