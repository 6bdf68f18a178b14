"""Networks whose inner width is no argument: a constant, a multiple of the model's, or rounded."""

import pytest
from torch import Tensor, nn

import attentest
from attentest.targets.adapt import Unclear

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


class Linear(Network):
    """Wrong: has no activation."""

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(x))  # type: ignore[no-any-return]


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
    ],
)
def test_inner_width_that_is_no_argument_is_inferred(one: type, said: str) -> None:
    read = attentest.adapted(one, "feed_forward")
    assert said in "\n".join(read.understood)  # type: ignore[attr-defined]
    report = attentest.check(read, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


def test_inner_width_that_is_rounded_is_a_question() -> None:
    with pytest.raises(Unclear, match=r"no multiple of the model's and no constant \(16 at 2"):
        attentest.adapted(RoundedUp, "feed_forward")


def test_a_mistake_in_a_network_of_constant_width_is_a_violation() -> None:
    report = attentest.check(Linear, "feed_forward", clauses=[FORMULA])
    assert report[FORMULA].status == "violation", str(report)


def test_width_that_is_one_multiple_for_all_small_models_is_no_constant() -> None:
    with pytest.raises(Unclear, match=r"256 at 2, .*2304 at 768\): it rounds the width"):
        attentest.adapted(RoundedFarUp, component="feed_forward")


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
