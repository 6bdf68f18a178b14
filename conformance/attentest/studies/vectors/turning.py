"""Recipes of the test vectors of rotary positions."""

from collections.abc import Callable, Iterator

import numpy as np

from attentest.studies.vectors.recipes import Given, Recipe
from attentest.testing.draw import Draw
from attentest_spec import Sizes


def turning() -> Iterator[Recipe]:
    """Yield the recipes of rotary positions."""
    sizes = Sizes(d_model=16, heads=2, trained_length=16, max_length=200)

    def turn(shape: tuple[int, ...], *starts: int) -> Callable[[Draw, Sizes], Given]:
        def make(draw: Draw, sizes: Sizes) -> Given:
            places = np.array(starts)[:, None] + np.arange(shape[2]) if starts else None
            return Given((draw.floats(*shape), places))

        return make

    for name, clause, shape, starts in (
        ("no-positions", "formula", (3, 2, 5, 8), ()),
        ("positions", "positions-given", (3, 2, 5, 8), (7, 0, 190)),
        ("one-token", "one-token", (2, 2, 1, 8), (4, 71)),
        ("long", "scaling", (1, 1, 37, 8), ()),
    ):
        yield Recipe("rotary", name, f"rotary.{clause}", turn(shape, *starts), sizes)
