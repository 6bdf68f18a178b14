"""Networks whose inner width is no argument: a constant, a multiple of the model's, or rounded."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.parameters.inner_widths import ROUNDING_WIDTHS, rounded_inner

FORMULA = "feed_forward.formula"


class Network(nn.Module):
    """A feed-forward network whose inner width is that of the method `inner`."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(dim, self.width(dim))
        self.outer = nn.Linear(self.width(dim), dim)

    def width(self, dim: int) -> int:
        return 40

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).relu())  # type: ignore[no-any-return]


class TwoThirds(Network):
    def width(self, dim: int) -> int:
        return int(8 * dim / 3)


class RoundedUp(Network):
    def width(self, dim: int) -> int:
        return -(-8 * dim // 3 // 16) * 16


class RoundedFarUp(Network):
    def width(self, dim: int) -> int:
        return -(-3 * dim // 256) * 256


class RoundedToNearest(Network):
    def width(self, dim: int) -> int:
        return round(8 * dim / 3 / 16) * 16 or 16


class Linear(Network):
    """Wrong: has no activation."""

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x))  # type: ignore[no-any-return]


class RoundedLinear(Linear, RoundedUp):
    """Wrong: has no activation."""


class Given(nn.Module):
    """An argument for the inner width has a default."""

    def __init__(self, embedding_dim: int, mlp_size: int = 48) -> None:
        super().__init__()
        self.inner = nn.Linear(embedding_dim, mlp_size)
        self.outer = nn.Linear(mlp_size, embedding_dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x).relu())  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (Network, "its inner layer is always 40 wide"),
        (TwoThirds, "its inner layer is 2.667 times as wide as the model"),
        (Given, "mlp_size"),
        (RoundedUp, "2.667 times as wide as the model, rounded up to a multiple of 16"),
        (RoundedFarUp, "3 times as wide as the model, rounded up to a multiple of 256"),
    ],
)
def test_inner_width_that_is_no_argument_is_inferred(one: type, said: str) -> None:
    read = attentest.adapted(one, "feed_forward")
    assert said in "\n".join(read.understood)  # type: ignore[attr-defined]
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


def test_a_mistake_in_a_network_of_rounded_width_is_a_violation() -> None:
    report = attentest.check(RoundedLinear, "feed_forward", clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)


def test_inner_width_that_follows_no_rule_is_a_question() -> None:
    with pytest.raises(Unclear, match=r"no multiple of the model's and no constant"):
        attentest.adapted(RoundedToNearest, "feed_forward")


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (lambda width: -(-8 * width // 3 // 256) * 256, (8 / 3, None, 256)),
        (lambda width: -(-(7 * width // 2) // 64) * 64, (3.5, None, 64)),
        (lambda width: round(8 * width / 3 / 64) * 64 or 64, None),
        (lambda width: 8 * width // 3 // 64 * 64 + 64, None),
    ],
)
def test_rules_of_rounding(
    rule: Callable[[int], int], expected: tuple[float, None, int] | None
) -> None:
    assert rounded_inner({width: rule(width) for width in ROUNDING_WIDTHS}) == expected


def test_a_mistake_in_a_network_of_constant_width_is_a_violation() -> None:
    report = attentest.check(Linear, "feed_forward", clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)


class GivenRoundedUp(Network):
    """An argument for the inner width is rounded up to an even number."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        nn.Module.__init__(self)
        hidden_dim += hidden_dim % 2
        self.inner = nn.Linear(dim, hidden_dim)
        self.outer = nn.Linear(hidden_dim, dim)


def test_given_width_that_is_rounded_is_a_question() -> None:
    """The rounded width is that of the model at the sizes at which it is read."""
    with pytest.raises(Unclear, match="an inner width of 12 where it is built with 11"):
        attentest.adapted(GivenRoundedUp, component="feed_forward")


class RoundedModel(nn.Module):
    """A decoder-only model whose networks are four times as wide, rounded up to 64."""

    offset = 0

    def __init__(self, vocab_size: int, dim: int, layers: int, heads: int, max_len: int) -> None:
        super().__init__()
        width = -(-4 * dim // 64) * 64
        self.tokens, self.positions = nn.Embedding(vocab_size, dim), nn.Embedding(max_len, dim)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, heads, width, 0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(dim, vocab_size)

    def forward(self, ids: Tensor) -> Tensor:
        length = ids.shape[1]
        hidden = torch.ones(length, length, device=ids.device).bool().triu(1 + self.offset)
        x = self.tokens(ids) + self.positions(torch.arange(length, device=ids.device))
        for block in self.blocks:
            x = block(x, hidden)
        return self.head(x)  # type: ignore[no-any-return]


class PeekingModel(RoundedModel):
    """Wrong: each position sees the next one."""

    offset = 1


@pytest.mark.proof
def test_decoder_only_model_of_rounded_widths_is_judged() -> None:
    read = attentest.adapted(RoundedModel)
    assert (read.limits.inner, read.limits.inner_multiple) == (4, 64)
    report = attentest.check(read, clauses=["language_model.formula"])
    assert report["language_model.formula"].status == "pass", str(report)


@pytest.mark.proof
def test_a_mistake_in_a_model_of_rounded_widths_does_not_conform() -> None:
    with suppress(Unclear):
        report = attentest.check(PeekingModel, clauses=["language_model.causality"])
        assert not report.conforms, str(report)
