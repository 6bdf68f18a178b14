"""Questions that name an option which works, and words for arguments of published packages."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share

from attentest.targets.adapt import Unclear

GATED = """
from torch import nn


class GLU(nn.Module):
    def __init__(self, embed_dim, ffn_dim, activation_fn):
        super().__init__()
        self.activation_fn = activation_fn
        self.fc1 = nn.Linear(embed_dim, ffn_dim, bias=False)
        self.fc2 = nn.Linear(ffn_dim, embed_dim, bias=False)
        self.gate = nn.Linear(embed_dim, ffn_dim, bias=False)

    def forward(self, x):
        g = self.gate(x)
        return self.fc2(self.activation_fn(self.fc1(x).float()).type_as(x) * g)
"""

ORDER = {"gate": "fc1", "inner": "gate"}

NORM = """
import torch
from torch import nn
from torch.nn import functional as F


class LayerNorm(nn.Module):
    def __init__(self, ndim: int = -1, eps: float = 1e-5, residual_weight: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(ndim))
        self.ndim, self.eps, self.residual_weight = ndim, eps, residual_weight

    def forward(self, input):
        weight = 1.0 + self.weight if self.residual_weight else self.weight
        return F.layer_norm(input, (self.ndim,), weight, None, self.eps)
"""

ABSTRACT = """
from abc import ABC, abstractmethod

from torch import nn


class Embedding(nn.Module, ABC):
    def __init__(self, num_embeddings: int, embed_dim: int):
        super().__init__()

    @abstractmethod
    def forward(self, x):
        ...


class StandardEmbedding(Embedding):
    def __init__(self, num_embeddings: int, embed_dim: int):
        super().__init__(num_embeddings, embed_dim)
        self.table = nn.Embedding(num_embeddings, embed_dim)

    def forward(self, x):
        return self.table(x)
"""


def test_gate_that_is_multiplied_by_its_name_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"--parameter gate=fc1 --parameter inner=gate") as asked:
        adapted(tmp_path, "GLU", GATED)
    assert "Options were tried" not in str(asked.value)
    backend = adapted(tmp_path, "GLU", GATED, parameters=ORDER)
    assert broken(backend, "feed_forward.formula") == []


@share(3)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [("* g)", "+ g)"), ("self.gate(x)", "self.gate(x).sigmoid()"), ("* g)", "* g * g)")],
)
def test_other_mistakes_in_such_a_network_have_no_option(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in GATED
    with pytest.raises(Unclear) as asked:
        adapted(tmp_path, "GLU", GATED.replace(right, wrong))
    assert "--parameter" not in str(asked.value)


def test_gate_and_inner_by_both_names_are_no_question(tmp_path: Path) -> None:
    named = GATED.replace("fc1", "up_proj").replace("fc2", "down_proj")
    named = named.replace(".gate", ".gate_proj")
    backend = adapted(tmp_path, "GLU", named, component="feed_forward")
    assert broken(backend, "feed_forward.formula")


def test_width_whose_default_is_minus_one_is_given(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="--give residual_weight=False"):
        adapted(tmp_path, "LayerNorm", NORM)
    plain = {"residual_weight": False}
    backend = adapted(tmp_path, "LayerNorm", NORM, given=plain)
    assert broken(backend, "layer_norm.formula") == []
    wrong = NORM.replace("else self.weight", "else self.weight**2")
    assert wrong != NORM
    assert broken(adapted(tmp_path, "LayerNorm", wrong, given=plain), "layer_norm.formula")


def test_abstract_class_is_asked_about_by_the_classes_made_of_it(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"abstract, without code for forward: .* StandardEmbedding"):
        adapted(tmp_path, "Embedding", ABSTRACT)


def test_activation_of_a_dense_layer_is_given_by_its_name(tmp_path: Path) -> None:
    dense = """
from torch import nn


class MLP(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dense_act_fn: str):
        super().__init__()
        self.wi = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)
        self.act = {"relu": nn.ReLU()}[dense_act_fn]

    def forward(self, x):
        return self.wo(self.act(self.wi(x)))
"""
    backend = adapted(tmp_path, "MLP", dense)
    assert broken(backend, "feed_forward.formula") == []
    wrong = adapted(tmp_path, "MLP", dense.replace("self.act(self.wi(x))", "self.wi(x)"))
    assert broken(wrong, "feed_forward.formula")


SINUSOIDS = """
import math

import torch


def sinusoids(length, channels, max_timescale=10000):
    step = math.log(max_timescale) / (channels // 2 - 1)
    angles = torch.arange(length)[:, None] * torch.exp(-step * torch.arange(channels // 2))
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)
"""


def test_function_called_sinusoids_is_read_by_its_numbers(tmp_path: Path) -> None:
    formula = "positional_encoding.formula"
    assert broken(adapted(tmp_path, "sinusoids", SINUSOIDS), formula) == []
    for right, wrong in (("torch.sin(angles)", "angles"), ("10000", "9000")):
        assert asked_or_broken(tmp_path, "sinusoids", SINUSOIDS, right, wrong, formula)


ONE_SEQUENCE = """
from torch import nn


class nTransformer(nn.Module):
    def __init__(self, *, dim, depth, heads=8):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))

    def forward(self, tokens, mask=None, norm_input=False):
        for layer in self.layers:
            tokens = layer(tokens)
        return tokens
"""


def test_switch_is_no_target(tmp_path: Path) -> None:
    with pytest.raises(Unclear) as asked:
        adapted(tmp_path, "nTransformer", ONE_SEQUENCE)
    assert "target=norm_input" not in str(asked.value)
