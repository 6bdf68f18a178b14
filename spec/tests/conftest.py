"""Fixtures of the spec's own tests."""

import numpy as np
import pytest
import shape_types
import torch

shape_types.install()  # before any test imports an oracle

# Two threads on two busy cores make a tiny product a thousand times slower.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def checked_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the shapes and types in the signatures of the oracles at every call."""
    monkeypatch.setattr(shape_types, "checking", True)


@pytest.fixture
def rng() -> np.random.Generator:
    """Give every test the same stream of random numbers, whatever ran before it."""
    return np.random.default_rng(20170612)
