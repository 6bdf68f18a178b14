"""Parts that are watched alone inside a whole leave few of its choices open."""

import math

import pytest
import torch
from finding import direct
from torch import nn

from attentest.targets.adapt.parameters import find_table
from attentest.targets.adapt.parameters import found as search
from attentest.targets.adapt.parameters.trials import trial as trials
from attentest_spec.oracles import ORACLES


class Attention(nn.Module):
    def __init__(self, width, heads, scale=math.sqrt):
        super().__init__()
        self.heads, self.scale = heads, scale
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, query, memory, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.q, query), (self.k, memory), (self.v, memory))
        )
        scores = q @ k.mT / self.scale(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class WithResidual(Attention):
    """The residual is added inside, so that the module alone is no attention."""

    def forward(self, query, memory, mask=None):
        return query + super().forward(query, memory, mask)


class Layer(nn.Module):
    attention: type[Attention] = Attention
    activation: type[nn.Module] = nn.ReLU
    scale = staticmethod(math.sqrt)

    def __init__(self, sizes):
        super().__init__()
        self.attend = self.attention(sizes.d_model, sizes.heads, self.scale)
        self.feed_forward = nn.Sequential(
            nn.Linear(sizes.d_model, sizes.d_ff),
            self.activation(),
            nn.Linear(sizes.d_ff, sizes.d_model),
        )
        self.first_norm, self.second_norm = (nn.LayerNorm(sizes.d_model) for _ in range(2))

    def forward(self, x, mask=None):
        x = self.first_norm(self.attended(x, mask))
        return self.second_norm(x + self.feed_forward(x))

    def attended(self, x, mask):
        return x + self.attend(x, x, mask)


class ResidualInside(Layer):
    attention = WithResidual
    activation = nn.GELU

    def attended(self, x, mask):
        return self.attend(x, x, mask)


class PreNormGelu(Layer):
    activation = nn.GELU

    def forward(self, x, mask=None):
        y = self.first_norm(x)
        x = x + self.attend(y, y, mask)
        return x + self.feed_forward(self.second_norm(x))


class WithoutRoot(Layer):
    scale = staticmethod(float)


class Stack(nn.Module):
    layer = PreNormGelu

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(self.layer(sizes) for _ in range(sizes.layers))

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class StackWithoutRoot(Stack):
    layer = WithoutRoot


@pytest.fixture
def asked(monkeypatch):
    """Count the calls of the whole component's reference."""
    count = {"encoder_layer": 0, "encoder": 0}

    def counted(component):
        def oracle(*inputs):
            count[component] += 1
            return ORACLES[component](*inputs)

        return oracle

    monkeypatch.setattr(trials, "ORACLES", {**ORACLES, **{one: counted(one) for one in count}})
    return count


@pytest.mark.parametrize(
    ("component", "style"),
    [("encoder_layer", Layer), ("encoder_layer", ResidualInside), ("encoder", Stack)],
)
def test_sound_wholes_fit_at_the_first_trials(component, style, asked):
    found = find_table(style, component, direct)
    assert found.table
    assert not found.doubts
    assert not found.remarks
    assert asked[component] <= 6  # four placements and variances of a layer, and its repetition


@pytest.mark.parametrize(
    ("component", "style"), [("encoder_layer", WithoutRoot), ("encoder", StackWithoutRoot)]
)
def test_wrong_wholes_are_tried_with_the_nearest_choices_alone(component, style, asked):
    found = find_table(style, component, direct)
    assert (
        found.table
        == find_table(Stack if component == "encoder" else Layer, component, direct).table
    )
    assert 0 < asked[component] <= 600  # 54 maps with the nine nearest combinations of 28


def test_a_part_that_is_no_attention_alone_is_read_in_its_layer():
    found = find_table(ResidualInside, "encoder_layer", direct)
    plain = find_table(Layer, "encoder_layer", direct)
    assert found.table == plain.table


class Listed(Attention):
    """Names do not say which of its projections is which."""

    q, k, v, o = (property(lambda self, at=at: self.projections[at]) for at in range(4))

    def __init__(self, width, heads, scale=math.sqrt):
        nn.Module.__init__(self)
        self.heads, self.scale = heads, scale
        self.projections = nn.ModuleList(nn.Linear(width, width) for _ in range(4))


class ListedLayer(Layer):
    attention = Listed


class ListedWithResidual(ResidualInside):
    attention = type("ListedResidual", (Listed, WithResidual), {})


class ListedWithoutRoot(ListedLayer):
    scale = staticmethod(float)


class ListedWithFourthRoot(ListedLayer):
    scale = staticmethod(lambda width: width**0.25)


@pytest.mark.proof
@pytest.mark.parametrize(
    ("style", "briefly"),
    [(ListedLayer, False), (ListedWithResidual, True), (ListedWithFourthRoot, True)],
)
def test_whole_with_a_part_that_nothing_explains_is_tried_briefly(style, briefly, monkeypatch):
    times = []

    class Noted(search.Clock):
        def __init__(self, seconds):
            times.append(seconds)
            super().__init__(seconds)

    monkeypatch.setattr(search, "Clock", Noted)
    found = find_table(style, "encoder_layer", direct)
    assert (search.BRIEFLY in times) == briefly
    assert bool(found.doubts) == (style is ListedWithFourthRoot)


@pytest.mark.proof
def test_part_with_a_known_mistake_is_assigned_by_it():
    found = find_table(ListedWithoutRoot, "encoder_layer", direct)
    assert not found.doubts
    assert found.table == find_table(ListedLayer, "encoder_layer", direct).table
    assert any("one known mistake gives the numbers" in one for one in found.remarks)
