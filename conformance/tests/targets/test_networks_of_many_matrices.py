"""Layers whose feed-forward network has many matrices, as those of experts have."""

import time

from attentest.targets.adapt.parameters.leaves import leaf_tables
from attentest.targets.adapt.parameters.units import Unit
from attentest_spec import Sizes

SIZES = Sizes(d_model=12, heads=3, d_ff=20)


def matrices(number: int) -> list[Unit]:
    """Return the matrices of `number` networks with one inner layer."""
    shapes = [(20, 12), (12, 20)]
    return [
        Unit(f"ff.{one}.{shape[0]}", "linear", f"ff.{one}.{shape[0]}.weight", "", shape)
        for one in range(number)
        for shape in shapes
    ]


def test_many_matrices_are_no_network_and_two_are_one():
    assert leaf_tables("feed_forward", matrices(1), SIZES)
    before = time.perf_counter()
    assert leaf_tables("feed_forward", matrices(64), SIZES) == []
    assert time.perf_counter() - before < 1
