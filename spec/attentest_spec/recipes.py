"""The common base of backends that are made of one recipe per component."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, Self, TypeVar

from attentest_spec.choices import Choices, Value
from attentest_spec.contract import Limits, Unsupported
from attentest_spec.names import require
from attentest_spec.profiles import DEFAULT, profile_of
from attentest_spec.sizes import Sizes

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True)
class RecipeBackend(Generic[R]):
    """The description of a backend; the adapter of a framework adds how a recipe is built.

    `profile` names the set of choices that it means; `choices` are those that it adds or changes,
    and hold all of them once the backend is made. Deviations are counted from the profile.
    `variants` returns the recipes under any choices, where the backend can be built under them.
    """

    name: str
    title: str
    recipes: Mapping[str, R]
    choices: Mapping[str, Value] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    profile: str = DEFAULT
    variants: Callable[[Choices], Mapping[str, R]] | None = None

    def __post_init__(self) -> None:
        """Add the choices of the profile; UnknownName where there is none of that name."""
        declared = {**profile_of(self.profile).choices, **self.choices}
        object.__setattr__(self, "choices", declared)

    @property
    def components(self) -> Collection[str]:
        """The names of the components that have a recipe."""
        return tuple(self.recipes)

    def under(self, choices: Mapping[str, Value]) -> Self:
        """Return it under `choices`; see :meth:`attentest_spec.Configurable.under`."""
        if self.variants is None:
            raise Unsupported(f"{self.name} cannot be built under other choices")
        declared = {**self.choices, **choices}
        return replace(self, choices=declared, recipes=self.variants(Choices.of(declared)))

    def sizes_of(self, sizes: Sizes) -> Sizes:
        """Return the sizes to build at: fewer heads of keys and values only where declared."""
        shared = self.choices.get("key_heads", "as-queries") == "fewer"
        return sizes if shared or sizes.kv_heads == 0 else sizes.but(kv_heads=0)

    def recipe(self, component: str) -> R:
        """Return the recipe of `component`; UnknownName where there is none."""
        return self.recipes[require("component", component, self.recipes)]
