"""A backend together with the settings it is judged under."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from attentest.analysis.lines import Locator
from attentest.analysis.undeclared import effective_choices, effective_limits, measured_for
from attentest.harness.subject import Subject
from attentest.judging.executed import Executed
from attentest.judging.searches import Searches
from attentest.results.text import line
from attentest_spec import Backend, Choices, Limits


@dataclass(frozen=True)
class Bench:
    """A backend, and all settings that a verdict depends on besides the clause.

    `precision` is the one asked for; a backend that does not claim float64 is judged in the finest
    that it claims.

    `seed` 0 is the fixed default, `effort` multiplies the number of examples, `shrink` searches
    the minimal counterexample, `diagnose` the likely causes.

    Where its verdicts are not `shown`, their status and message alone are wanted: a failing example
    is not run again to see whether it always fails, and no counterexample is written.

    `suspects` grows while clauses are judged: the likely cause of one failure is tried first in
    the next ones, as a mistake in an inner component fails those outside of it too. It changes
    no status. `searches` grows too: what was explained, or searched in vain, in one clause is
    not searched for in full again in others.
    `locator` finds the lines of wrong answers, and keeps what it found. `executed` observes which
    branches of the code are run, where that is wanted.
    """

    backend: Backend
    precision: str = "float64"
    device: str = "cpu"
    seed: int = 0
    effort: float = 1.0
    shrink: bool = True
    diagnose: bool = True
    shown: bool = True
    loader: str = ""
    suspects: list[tuple[str, ...]] = field(default_factory=list, compare=False, repr=False)
    searches: Searches = field(default_factory=Searches, compare=False, repr=False)
    locator: Locator = field(default_factory=Locator, compare=False, repr=False)
    executed: Executed | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, backend: "Backend | Bench") -> "Bench":
        """Return `backend` on a bench of its own, or the bench that it is."""
        return backend if isinstance(backend, Bench) else cls(backend)

    @classmethod
    def for_status(cls, backend: Backend, **settings: Any) -> "Bench":
        """Return a bench for verdicts of which the status and the message alone are read.

        Scoring judges thousands of mistakes; half of the time would go into what is not read.
        """
        return cls(backend, shrink=False, diagnose=False, shown=False, **settings)

    @property
    def name(self) -> str:
        """The name of the backend, as one line that is safe to show."""
        return line(str(self.backend.name))

    @cached_property
    def _measured(self) -> dict[tuple[str, ...], Choices]:
        """The choices, by the components that were measured for them."""
        return {}

    def choices(self, component: str = "") -> Choices:
        """Return the declared choices, and measured ones where none is specified or declared.

        Those that clauses about `component` cannot depend on are not measured.
        """
        parts = measured_for(component, Choices.of(self.backend.choices))
        if parts not in self._measured:
            found = effective_choices(self.backend, self.computed_in, self.device, parts)
            self._measured[parts] = found
        return self._measured[parts]

    @cached_property
    def limits(self) -> Limits:
        """The declared limits, and those that were measured where none is declared."""
        choices = Choices.of(self.backend.choices)
        return effective_limits(self.backend, choices, self.computed_in, self.device)

    @cached_property
    def computed_in(self) -> str:
        """The precision that the backend is judged in."""
        return self.backend.limits.finest if self.precision == "float64" else self.precision

    def subject(self, component: str = "", *, alone: bool = True) -> Subject:
        """Return the backend, guarded and recorded, for what is asked of a `component`.

        Where it is not `alone`, other components are asked as well.
        """
        return Subject(
            self.backend,
            choices=self.choices(component if alone else ""),
            limits=self.limits,
            precision=self.limits.precision_of(component, self.computed_in),
            device=self.device,
            watch=nullcontext if self.executed is None else self.executed.watch,
        )
