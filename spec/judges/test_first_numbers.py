"""The declared distributions compared with the numbers that torch draws, by exact quantiles.

The largest of the differences between two distribution functions (Kolmogorov and Smirnov) exceeds
its limit by chance once in 10^9 runs; the seed is fixed.
"""

from math import sqrt

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from attentest_spec.choices import Choices
from attentest_spec.initialisation import distribution
from attentest_spec.setting import Setting
from attentest_spec.sizes import Sizes

SIZES = Sizes(d_model=48, d_ff=100)
MATRIX = "encoder.layers.0.feed_forward.inner.weight"
QUERY = "encoder.layers.0.self_attention.query.weight"


def judge(values: torch.Tensor, name: str, **choices: str) -> float:
    """Return the probability of numbers that are so far from the declared distribution."""
    drawn = values.detach().double().numpy()
    given = Setting(SIZES, Choices(**{"tying": "none", **choices}))  # type: ignore[arg-type]
    declared = distribution(given, name, drawn.shape)
    assert declared is not None
    kinds = {
        "normal": stats.norm(scale=declared.deviation),
        "uniform": stats.uniform(-declared.bound, 2 * declared.bound),
    }
    return float(stats.kstest(drawn.ravel(), kinds[declared.kind].cdf).pvalue)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.mark.parametrize("option", ["xavier-uniform", "xavier-normal"])
def test_xavier(option: str) -> None:
    draw = {"xavier-uniform": nn.init.xavier_uniform_, "xavier-normal": nn.init.xavier_normal_}
    values = draw[option](torch.empty(100, 48))
    assert judge(values, MATRIX, initialisation=option) > 1e-9
    assert judge(values * sqrt(1.5), MATRIX, initialisation=option) < 1e-9


def test_linear_map_and_its_bias() -> None:
    maps = [nn.Linear(48, 100) for _ in range(20)]
    weight = torch.stack([one.weight for one in maps]).view(-1, 48)
    assert judge(weight, MATRIX, initialisation="torch-linear") > 1e-9
    bias = torch.cat([one.bias for one in maps])
    name = MATRIX.replace("weight", "bias")
    assert judge(bias, name, bias_initialisation="torch-linear") > 1e-9


def test_packed_projections_of_torch() -> None:
    held = nn.MultiheadAttention(48, 4).in_proj_weight[:48]
    named = {"initialisation": "xavier-uniform"}
    assert judge(held, QUERY, initialisation_packing="packed", **named) > 1e-9
    assert judge(held, QUERY, initialisation_packing="separate", **named) < 1e-9


def test_embedding_of_torch() -> None:
    values = nn.Embedding(200, 48).weight
    name = "source_embedding.weight"
    assert judge(values, name, embedding_initialisation="normal-1") > 1e-9
    assert judge(values, name, embedding_initialisation="normal-inverse-sqrt-d") < 1e-9


def test_margins_of_the_clauses_hold_the_exact_quantiles() -> None:
    """Laurent and Massart's bounds lie outside of the exact quantiles at 1e-12."""
    x = np.log(2e12)
    for count in (96, 3072, 10_000):
        margin = 2 * np.sqrt(count * x)
        assert count + margin + 2 * x > stats.chi2.isf(1e-12, count)
        assert count - margin < stats.chi2.ppf(1e-12, count)
        share = np.sqrt(x / (2 * count))
        assert 2 * np.exp(-2 * count * share**2) <= 1.0000001e-12
