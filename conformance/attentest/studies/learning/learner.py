"""Those that learn, wherever they run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from attentest.harness.description import Facts
from attentest.harness.errors import Absent, BackendError, Refused
from attentest.results.output import Occupied
from attentest.results.text import summary
from attentest.studies.learning.checkpoint import State, load_state, save_state
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.result import Curve
from attentest.studies.learning.training import Told, Trainer
from attentest_spec import Backend, Choices

Keep = Callable[[State], None]


class Learner(Protocol):
    """A backend that is trained.

    Both methods raise LoadFailure where it cannot be loaded, and Refused otherwise.
    """

    def facts(self) -> Facts:
        """Return what is known of it."""

    def train(self, regime: Regime, seed: int, path: Path | None, told: Told) -> Curve:
        """Train its model, from the checkpoint at `path` on where there is one.

        `told` is called with the number of steps that are done. Raises Occupied for a checkpoint of
        something else.
        """


@dataclass(frozen=True)
class Here:
    """A backend in this process, by what it is called."""

    label: str
    backend: Backend

    def facts(self) -> Facts:
        """See :class:`Learner`."""
        return Facts.of(self.backend)

    def train(self, regime: Regime, seed: int, path: Path | None, told: Told) -> Curve:
        """See :class:`Learner`."""
        choices = Choices.of(self.backend.choices).as_dict()
        marks = {"backend": self.label, "seed": seed, "choices": choices, **regime.as_dict()}
        try:
            state = load_state(path, marks) if path else None
            trainer = Trainer.of(self.backend, regime, seed, state)
            end = trainer.train(lambda state: _kept(path, state, marks), told)
        except (Absent, BackendError) as failure:
            raise Refused(str(failure)) from failure
        except (Refused, Occupied):
            raise
        except Exception as failure:  # what it answers may have any form
            raise Refused(f"what it answers cannot be used: {summary(failure)}") from failure
        return Curve(self.label, seed, tuple(end.points), end.seconds, end.cpu_seconds)


def _kept(path: Path | None, state: State, marks: Mapping[str, Any]) -> None:
    if path is not None:
        save_state(path, state, marks)
