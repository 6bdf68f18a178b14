"""Those that are compared, wherever they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from attentest.harness.errors import Absent, BackendError, Refused, Violation
from attentest.results.text import summary
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.example import Example
from attentest.studies.comparison.recording import Recording, record
from attentest_spec import Backend, Choices


class Participant(Protocol):
    """A backend that is compared.

    Both methods raise LoadFailure where it cannot be loaded, and :class:`Refused` otherwise.
    """

    def account(self) -> Account:
        """Return what is known of it."""

    def record(self, choices: Choices, components: Sequence[str], example: Example) -> Recording:
        """Return what its `components` do with `example`, under the weights of `choices`."""


@dataclass(frozen=True)
class Here:
    """A backend in this process."""

    backend: Backend

    def account(self) -> Account:
        """See :class:`Participant`."""
        try:
            return Account.of(self.backend)
        except Exception as failure:  # describing a backend runs code of its author
            raise Refused(f"it could not be described: {summary(failure)}") from failure

    def record(self, choices: Choices, components: Sequence[str], example: Example) -> Recording:
        """See :class:`Participant`."""
        try:
            return record(self.backend, choices, components, example)
        except (Absent, BackendError, Violation) as failure:
            raise Refused(str(failure)) from failure
        except Exception as failure:  # so do the steps that it tells
            raise Refused(f"what it tells cannot be read: {summary(failure)}") from failure
