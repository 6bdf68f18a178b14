"""Modules that hold functions, which cannot be pickled: nothing that they compute is wrong."""

import pytest
import torch
from torch import Tensor, nn

import attentest


class FeedForward(nn.Module):
    """A feed-forward network with a lambda in an attribute."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.activation = lambda x: torch.relu(x)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.activation(self.inner(x))
        out: Tensor = self.outer(hidden)
        return out


class ForgetfulFeedForward(FeedForward):
    """A network whose copies have another activation."""

    def __deepcopy__(self, memo: dict[int, object]) -> "FeedForward":
        made = FeedForward(self.inner.in_features, self.inner.out_features)
        made.load_state_dict(self.state_dict())
        made.activation = torch.sigmoid
        return made.to(self.inner.weight.dtype)


@pytest.mark.parametrize(("network", "right"), [(FeedForward, True), (ForgetfulFeedForward, False)])
def test_a_lambda_is_no_mistake_and_its_loss_in_a_copy_is(network: type, right: bool) -> None:
    report = attentest.check(network, clauses=["feed_forward.activation-survives-copies"])
    assert report.conforms == right
