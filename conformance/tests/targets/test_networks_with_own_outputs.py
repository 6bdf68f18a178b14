"""Networks whose constructor has a width of its own for the output, as those for other uses."""

import pytest
import torch
from torch import nn

import attentest
from attentest.targets.adapt.reading import Unclear


class MLP(nn.Module):
    """Two linear maps, a ReLU between them, and an end."""

    def __init__(self, input_size, output_size, hidden_size):
        super().__init__()
        self.first = nn.Linear(input_size, hidden_size)
        self.second = nn.Linear(hidden_size, output_size)

    def between(self, x):
        """Return the inner rows."""
        return torch.relu(x)

    def end(self, x):
        """Return the output."""
        return x

    def forward(self, x):
        """Return the output of rows."""
        return self.end(self.second(self.between(self.first(x))))


class Classifier(MLP):
    """One that returns probabilities."""

    def end(self, x):
        """Return probabilities."""
        return x.softmax(dim=1)


class LinearMLP(MLP):
    """One without its activation."""

    def between(self, x):
        """Return the inner rows as they are."""
        return x


SLUGS = ["feed_forward.formula"]


def test_a_network_with_its_own_output_conforms() -> None:
    assert attentest.check(MLP, clauses=SLUGS).conforms


def test_a_network_that_returns_probabilities_is_asked_about() -> None:
    with pytest.raises(Unclear, match="output_size is a width of its own"):
        attentest.adapted(Classifier, "feed_forward")


def test_a_known_mistake_of_such_a_network_is_a_violation() -> None:
    assert not attentest.check(LinearMLP, "feed_forward", clauses=SLUGS).conforms
