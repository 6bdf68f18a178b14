"""Fixtures of the spec's own tests."""

import numpy as np
import pytest
import torch

torch.set_num_threads(
    1
)  # two threads on two busy cores make a tiny product a thousand times slower


@pytest.fixture
def rng() -> np.random.Generator:
    """Give every test the same stream of random numbers, whatever ran before it."""
    return np.random.default_rng(20170612)
