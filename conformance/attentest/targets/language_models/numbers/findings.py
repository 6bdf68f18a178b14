"""The state of a reading: the choices and places that are known, and the numbers reached."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from attentest.targets.language_models.numbers.places import View
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.setting import Floats


@dataclass(frozen=True)
class Found:
    """Choices and views of parameters that reproduce the numbers of a model up to some step.

    `first` are the choices of the first layer that those of the second one take the place of.
    """

    sizes: Sizes
    choices: Mapping[str, Value] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    first: Mapping[str, Value] = field(default_factory=dict)

    def but(self, choices: Mapping[str, Value], views: Mapping[str, View]) -> "Found | None":
        """Return a copy with more choices and views; None where a choice contradicts another."""
        if against(self.choices, choices):
            return None
        return replace(self, choices={**self.choices, **choices}, views={**self.views, **views})

    def freed(self, own: tuple[str, ...]) -> "Found":
        """Return a copy in which the next layer may have other choices: those that begin so."""
        first = {name: one for name, one in self.choices.items() if name.startswith(own)}
        kept = {name: one for name, one in self.choices.items() if name not in first}
        return replace(self, choices=kept, first=first)

    def uses(self, views: Iterable[View]) -> bool:
        """Say whether one of the parameters, or the same part of it, has a place already."""
        taken = [one.place for one in self.views.values()]
        return any(view.place in taken for view in views)


@dataclass(frozen=True)
class State:
    """The finding, and the numbers (B, T, D) that are reached."""

    found: Found
    x: Floats


def against(known: Mapping[str, Value], options: Mapping[str, Value]) -> bool:
    """Say whether `options` contradict the choices that are `known`."""
    return any(known.get(name, value) != value for name, value in options.items())
