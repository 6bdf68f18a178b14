"""User settings for code that was not written for the contract."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attentest_spec import CHOICES, COMPONENTS
from attentest_spec.choices import Value
from attentest_spec.names import require
from attentest_spec.registry import LoadFailure

MASKS = ("keep", "blocks", "additive")
"""What a mask may mean: True may be attended, True is hidden, added to the scores."""

LAYOUTS = ("batch-first", "sequence-first")
"""Which axis comes first."""


class Unclear(LoadFailure):
    """Code that could not be read; its text is one paragraph that says what to add."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is settled by the user; all that is empty is read off the code.

    `component` says which one it is. `arguments` maps a word of the contract (an input such as
    "mask", or a size such as "d_model") to the argument that carries it, `given` an argument to a
    fixed value, `mask` is one of :data:`MASKS`, `layout` one of :data:`LAYOUTS`, `choices` are
    declared. Raises UnknownName for a word that is none, and ValueError for no option of a choice.
    """

    component: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    mask: str = ""
    layout: str = ""
    choices: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every word."""
        if self.component:
            require("component", self.component, COMPONENTS)
        if self.mask:
            require("meaning of a mask", self.mask, MASKS)
        if self.layout:
            require("layout", self.layout, LAYOUTS)
        for name, value in self.choices.items():
            CHOICES[require("choice", name, CHOICES)].check(value)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that are not empty; values in `given` stay the objects they are."""
        return {name: value for name, value in vars(self).items() if value}
