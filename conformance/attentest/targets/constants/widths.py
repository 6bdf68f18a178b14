"""Widths that are constants of the code, which is judged at even ones alone."""

import ast
from collections.abc import Iterable

from attentest.targets.adapt.fillings import Filling
from attentest.targets.constants.copies import copied

_WIDTH = "sizes.d_model"


def is_built_at_its_width(expression: str) -> bool:
    """Say whether the `expression` of a model puts its width in the place of a constant."""
    calls = (one for one in ast.walk(ast.parse(expression)) if isinstance(one, ast.Call))
    copies = (one for one in calls if ast.unparse(one.func) == copied.__name__)
    return any(ast.unparse(each.value) == _WIDTH for one in copies for each in one.keywords)


def has_constant_width(constants: Iterable[Filling]) -> bool:
    """Say whether one of the `constants` of a component is its width."""
    return any("d_model" in one.settles for one in constants)
