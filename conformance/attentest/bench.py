"""A backend together with the settings it is judged under."""

from dataclasses import dataclass
from functools import cached_property

from attentest.settle import settle
from attentest_spec import Backend, Choices


@dataclass(frozen=True)
class Bench:
    """What a verdict depends on besides the clause.

    `seed` 0 is the fixed default, `effort` multiplies the number of examples, `shrink` looks for
    the smallest violation, `diagnose` names the mistakes that it looks like, `suspects` are the
    names of what explained other clauses.
    """

    backend: Backend
    precision: str = "float64"
    device: str = "cpu"
    seed: int = 0
    effort: float = 1.0
    shrink: bool = True
    diagnose: bool = True
    suspects: tuple[tuple[str, ...], ...] = ()
    loader: str = ""

    @classmethod
    def of(cls, backend: "Backend | Bench") -> "Bench":
        """Return `backend` on a bench of its own, or the bench that it is."""
        return backend if isinstance(backend, Bench) else cls(backend)

    @cached_property
    def choices(self) -> Choices:
        """What is declared, and what was measured where the paper is silent and nothing is."""
        return settle(self.backend, self.precision, self.device)
