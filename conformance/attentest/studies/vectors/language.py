"""Recipes of the test vectors of decoder-only models: padding on either side, given positions."""

from collections.abc import Callable, Iterator

import numpy as np

from attentest.studies.vectors.recipes import SIZES, Given, Recipe
from attentest.testing.draw import Draw
from attentest_spec import Sizes
from attentest_spec.setting import Array

Make = Callable[[Draw, Sizes], Given]


def language() -> Iterator[Recipe]:
    """Yield the recipes; the first of a component shows most of its choices."""
    sizes = SIZES.but(layers=1)
    for name, make, formula in (
        ("causal_layer", _rows, "layer-formula"),
        ("language_model", _tokens, "formula"),
    ):
        for case, left, places in (
            ("padding-on-the-left", True, False),
            ("padding-on-the-right", False, False),
            ("given-positions", True, True),
        ):
            clause = f"language_model.{formula}"
            yield Recipe(name, case, clause, _with_padding(make, left=left, places=places), sizes)


def _rows(draw: Draw, sizes: Sizes) -> Array:
    return draw.floats(2, 4, sizes.d_model)


def _tokens(draw: Draw, sizes: Sizes) -> Array:
    return draw.rng.integers(0, sizes.target_vocabulary, size=(2, 4))


def _with_padding(make: Callable[[Draw, Sizes], Array], *, left: bool, places: bool) -> Make:
    """Return what draws an input (2, 4, ..), of whose second row one position is padding."""

    def given(draw: Draw, sizes: Sizes) -> Given:
        mask = np.ones((2, 4), dtype=bool)
        mask[1, 0 if left else -1] = False
        positions = np.array([[2, 3, 5, 6], [0, 4, 5, 7]]) if places else None
        return Given((make(draw, sizes), mask, positions), mask)

    return given
