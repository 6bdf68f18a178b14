"""Locates the line of code at which its numbers first leave the reference's.

A call that gives a wrong answer is repeated with every operation of torch or JAX recorded: its
value, what it was made from, and the line of the user's code. The values are matched with the steps
of the reference's formula, whatever order their axes are in. The first operation that makes the
answer right, once it holds the reference's value, is where the mistake is; what it computed is said
in words of the formula. Where no operation can be recorded, nothing is said.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from attentest.analysis.lines.recorders import recorder
from attentest.harness.subject import Step, Subject
from attentest.results.verdict import Location


@dataclass
class Locator:
    """Locates the violations of one backend; each component is searched once."""

    _known: dict[tuple[str, str], Any] = field(default_factory=dict)

    def locate(
        self,
        subject: Subject,
        steps: Sequence[Step],
        *,
        compared: bool = True,
        counted: str = "",
    ) -> Location | None:
        """Return the line at which the wrong answer among `steps` begins, None where unknown.

        A backend that was read with one mistake knows its line, which explains numbers that were
        `compared` with the reference's, unless another one is proved. `counted` is the component
        whose parameters were counted.
        """
        known: Location | None = getattr(subject.backend, "mistaken", None) if compared else None
        found = self._searched(subject, steps, counted)
        return found if known is None or (found is not None and found.confirmed) else known

    def _searched(self, subject: Subject, steps: Sequence[Step], counted: str) -> Location | None:
        if recorder(subject.backend) is None:  # nothing that could be recorded
            return None
        from attentest.analysis import cached_steps, rates
        from attentest.analysis.lines.locate import locate

        asked = {one.question.probe.component for one in steps if one.question}
        try:
            with np.errstate(all="ignore"):  # what wrong code computes may overflow
                if asked == {rates.COMPONENT}:
                    return rates.line_of_rate(subject)
                for component in asked.intersection(cached_steps.COMPONENTS):
                    return cached_steps.line_of_cache(subject, component)
                return locate(subject, steps, self._known, counted)
        except Exception:  # the user's code runs again, and a verdict does not depend on the line
            return None
