"""The constructors of backends for unusual implementations."""

from collections.abc import Callable, Mapping
from typing import Any

from attentest_spec import Limits, Sizes, Table
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend

Build = Callable[[Sizes], Any]
NO_DROPOUT = Limits(dropout=False)


def member(
    name: str,
    title: str,
    recipes: Mapping[str, Recipe],
    choices: Mapping[str, Value] | None = None,
    limits: Limits = NO_DROPOUT,
) -> TorchBackend:
    """Return a backend without dropout; `title` says in one sentence what is unusual about it."""
    return TorchBackend(
        name=name,
        title=title,
        recipes=recipes,
        choices=choices or {},
        limits=limits,
    )


def function(
    component: str, implementation: Callable[..., Any], title: str, **choices: Value
) -> TorchBackend:
    """Return a backend that provides `component` by a function, under the function's name."""
    name = implementation.__name__.replace("_", "-")
    return member(name, title, {component: Recipe(build=lambda sizes: implementation)}, choices)


def module(
    component: str,
    build: Build,
    title: str,
    table: Table | None = None,
    limits: Limits = NO_DROPOUT,
    **choices: Value,
) -> TorchBackend:
    """Return a backend that provides `component` by a module class, under the class's name."""
    name = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in _named(build))
    recipe = Recipe(build=build, parameters=table or {})
    return member(name.lstrip("-"), title, {component: recipe}, choices, limits)


def _named(build: Build) -> str:
    return str(getattr(build, "__name__", type(build).__name__))
