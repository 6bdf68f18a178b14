"""A rate of dropout that a class takes and does not use is an assumption on the first screen."""

import pytest
import torch
from proof import share
from torch import Tensor, nn

import attentest

torch.set_num_threads(1)

IDLE = "rate of dropout is meant for nothing"
SOME = ["feed_forward.formula"]


class FeedForward(nn.Module):
    """Two linear maps; dropout is between them, or only taken."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.dropout(torch.relu(self.inner(x))))


class Forgotten(FeedForward):
    def forward(self, x: Tensor) -> Tensor:
        return self.outer(torch.relu(self.inner(x)))


class Config:
    """The settings of a whole model."""

    def __init__(self, n_embd: int = 8, dropout: float = 0.1) -> None:
        self.n_embd, self.dropout = n_embd, dropout


class Configured(nn.Module):
    """A network of a model whose configuration has a rate for other parts."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(torch.relu(self.c_fc(x)))


@share(3, rest=1)
@pytest.mark.parametrize(
    ("target", "idle"), [(FeedForward, False), (Forgotten, True), (Configured, False)]
)
def test_dropout_that_drops_nothing_is_an_assumption(target: type, idle: bool) -> None:
    report = attentest.check(target, "feed_forward", clauses=SOME)
    assert report.conforms
    assert (IDLE in "\n".join(report.inferred)) == idle
