"""The data of a design choice: a question, its options, and the option of the paper."""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any

Value = str | float


@dataclass(frozen=True)
class Option:
    """One answer to a choice: its name and its meaning in one phrase."""

    name: str
    meaning: str


@dataclass(frozen=True)
class Choice:
    """A design axis: its options, the option of the paper, and the clause that judges it.

    `paper` is the paper's option, or None where the paper does not specify one. `number` says which
    numbers are allowed in place of an option's name ("" for none).
    """

    name: str
    question: str
    options: tuple[Option, ...]
    paper: str | None
    clause: str
    source: str
    why: str
    number: str = ""
    default: Value = ""

    @cached_property
    def names(self) -> list[str]:
        """The names of the options."""
        return [option.name for option in self.options]

    @property
    def first(self) -> Value:
        """The value that applies when a backend declares nothing."""
        return self.default if self.default != "" else self.options[0].name

    def check(self, value: Value) -> Value:
        """Return `value` if it is an option; raise a ValueError that lists the options if not."""
        if isinstance(value, str) and value in self.names:
            return value
        if self.number and isinstance(value, int | float) and not isinstance(value, bool):
            if not isfinite(value):
                raise ValueError(
                    f"The choice {self.name} must be a finite number ({self.number}), "
                    f"and {value!r} is not."
                )
            return float(value)
        allowed = ", ".join([*self.names, *filter(None, [self.number])])
        raise ValueError(f"The choice {self.name} cannot be {value!r}; it is one of: {allowed}.")


def entry(name: str, question: str, *options: tuple[str, str], **rest: Any) -> Choice:
    """Return the choice `name`; `options` are pairs of a name and its meaning."""
    return Choice(name, question, tuple(Option(*option) for option in options), **rest)
