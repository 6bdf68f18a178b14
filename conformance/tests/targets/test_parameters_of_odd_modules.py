"""Modules that no parameter map can be found for: a reason is told, and nothing is raised."""

import pytest
import styles_of_attention as attention
import styles_of_layers as layers
import styles_of_models as models
import styles_of_parts as parts
import styles_of_storage as storage
import torch
from finding import direct
from proof import share
from torch import nn

from attentest.targets.adapt.parameters import find_table
from attentest_spec import COMPONENTS


def test_odd_modules_get_an_empty_table_and_a_reason():
    def refuses(sizes):
        raise ValueError("only on Sundays")

    class Raises(attention.FourLinears):
        def forward(self, *inputs):
            raise RuntimeError("no")

    for build, said in (
        (refuses, "only on Sundays"),
        (lambda sizes: abs, "no torch.nn.Module"),
        (lambda sizes: nn.ReLU(), "no parameters"),
        (lambda sizes: nn.Linear(3, 3), "no multi head attention"),
        (lambda sizes: nn.LSTM(3, 3), "no multi head attention"),
    ):
        found = find_table(build, "multi_head_attention", direct)
        assert found.table == {}
        assert found.lines == ()
        assert any(said in one for one in found.remarks), found.remarks
    found = find_table(Raises, "multi_head_attention", direct)
    assert found.table["query"] == "linears.0"
    assert any("RuntimeError: no" in one for one in found.remarks)


class Numbers(nn.Module):
    """Parameters of every unusual kind."""

    def __init__(self, sizes):
        super().__init__()
        self.scalar = nn.Parameter(torch.ones(()))
        self.whole = nn.Parameter(torch.ones(sizes.d_model, dtype=torch.int64), requires_grad=False)
        self.complex = nn.Parameter(torch.ones(sizes.d_model, sizes.d_ff, dtype=torch.complex64))
        self.empty = nn.Parameter(torch.ones(0, sizes.d_model))
        self.deep = nn.Parameter(torch.ones(2, 1, 3, 1, 4))


ODD = (
    Numbers,
    lambda sizes: nn.LazyLinear(3),
    lambda sizes: nn.LSTM(sizes.d_model, sizes.d_ff),
    lambda sizes: nn.Transformer(sizes.d_model, sizes.heads, 1, 1, sizes.d_ff),
    lambda sizes: nn.utils.parametrizations.weight_norm(nn.Linear(sizes.d_model, sizes.d_ff)),
    lambda sizes: nn.Sequential(nn.Linear(sizes.d_model, 1), nn.BatchNorm1d(sizes.d_model)),
    lambda sizes: nn.ModuleList([nn.Linear(sizes.d_model, sizes.d_model)] * 12),
)


@share(6, rest=1)
@pytest.mark.parametrize("component", sorted(set(COMPONENTS)))
def test_a_module_of_another_component_raises_nothing(component):
    for build in (storage.Packed, layers.LongNames, models.Translator, parts.Lookup, *ODD):
        found = find_table(build, component, direct)
        assert found.table or found.remarks


def test_existing_state_is_unchanged():
    state = torch.get_rng_state()
    find_table(attention.FourLinears, "multi_head_attention", direct)
    assert torch.equal(torch.get_rng_state(), state)
