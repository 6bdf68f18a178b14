"""How models are trained: the task, the sizes, the steps, the rate, and where they start."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from attentest.studies.comparison.example import BadExample, Example
from attentest.studies.learning.optimiser import Schedule
from attentest.studies.learning.tasks import TASKS, BadTask, Task
from attentest_spec import Limits, Sizes
from attentest_spec.names import require

EQUAL, OWN = "equal", "own"
"""Where training starts: at weights that are the same for all, or at each backend's own."""

PRECISIONS = ("float32", "float64")
"""What can be trained in, the first that all support: half precision needs more than Adam."""


@dataclass(frozen=True)
class Regime:
    """Everything that a learning curve depends on besides the backend and the seed.

    `every` so many steps the model is validated on `validation` questions that are held out. The
    rate is the paper's with `warmup`, or a constant `rate`. `initial` is :data:`EQUAL` or
    :data:`OWN`. Dropout is 0: data, weights and steps are to be equal.
    """

    task: str = "copy"
    length: int = 10
    steps: int = 500
    every: int = 25
    batch: int = 30
    validation: int = 100
    sizes: Sizes = field(default_factory=Sizes)
    precision: str = PRECISIONS[0]
    rate: float | None = None
    warmup: int = 400
    smoothing: float = 0.0
    initial: str = EQUAL

    @classmethod
    def of(cls, task: str = "copy", **asked: Any) -> "Regime":
        """Return the regime of a task with what is asked for; what is None is the task's own.

        `d_model`, `heads`, `d_ff` and `layers` are sizes. Raises UnknownName for a task or a way to
        start that is none, and :class:`BadTask` for numbers that cannot be.
        """
        chosen = TASKS[require("task", task, TASKS)]
        given = {name: value for name, value in asked.items() if value is not None}
        sizes = {name: given.pop(name) for name in tuple(SIZES) if name in given}
        length = given.pop("length", chosen.length)
        steps = given.pop("steps", chosen.steps)
        every = given.pop("every", max(1, steps // POINTS))
        sized = _sizes(chosen, length, {**SIZES, **sizes})
        made = cls(task, length, steps, every, sizes=sized, **given)
        made._check()
        return made

    def _check(self) -> None:
        require("way to start", self.initial, (EQUAL, OWN))
        require("precision to train in", self.precision, PRECISIONS)
        counted = {name: getattr(self, name) for name in COUNTS}
        counted |= {_NAMES.get(name, name): getattr(self.sizes, name) for name in SIZES}
        for name, number in counted.items():
            if number < 1:
                raise BadTask(f"{name} is at least 1; {number} is not.")
        if self.sizes.d_model % self.sizes.heads:
            raise BadTask(
                f"width (d_model) is a multiple of heads; {self.sizes.d_model} is none of "
                f"{self.sizes.heads}."
            )
        if not 0 <= self.smoothing < 1:
            raise BadTask(
                f"Label smoothing is at least 0 and less than 1; {self.smoothing} is not."
            )
        if self.rate is not None and not 0 < self.rate < inf:
            raise BadTask(f"A learning rate is a number greater than 0; {self.rate} is not.")
        for side in (False, True):
            self.of_task.batch([0], 1, self.length, held_out=side)

    @property
    def of_task(self) -> Task:
        """The task by its name."""
        return TASKS[self.task]

    @property
    def schedule(self) -> Schedule:
        """The learning rates."""
        return Schedule(self.sizes.d_model, self.warmup, self.rate)

    def fitted(self, limits: Mapping[str, Limits]) -> tuple["Regime", tuple[str, ...]]:
        """Return it inside the `limits` of all backends, by their names, and what was changed.

        Raises :class:`BadTask` where nothing suits all of them.
        """
        try:
            fitted = Example(self.sizes, (), ()).fitted(limits)
        except BadExample as wrong:
            raise BadTask(str(wrong)) from wrong
        if fitted.sizes.max_length < self.sizes.max_length:
            shortest = min(limits, key=lambda name: limits[name].length or self.sizes.max_length)
            raise BadTask(
                f"The task {self.task} of length {self.length} needs {self.sizes.max_length} "
                f"positions, and {shortest} is limited to {fitted.sizes.max_length}. Give it a "
                f"smaller length."
            )
        made = replace(self, sizes=fitted.sizes)
        return made, tuple(f"{one}." for one in fitted.notes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Regime":
        """Read a regime back from plain values."""
        return cls(**{**plain, "sizes": Sizes(**plain["sizes"])})


SIZES = {"d_model": 32, "heads": 4, "d_ff": 64, "layers": 1}
"""The sizes of the models where no others are asked for."""

_NAMES = {"d_model": "width (d_model)", "d_ff": "inner width (d_ff)"}
"""Names of the sizes for users: as an option of the command, and in Python."""

COUNTS = ("length", "steps", "every", "batch", "validation", "warmup")

POINTS = 20
"""How often a model is validated where nothing is asked for."""


def _sizes(task: Task, length: int, sizes: Mapping[str, int]) -> Sizes:
    return Sizes(
        **sizes,
        source_vocabulary=task.vocabulary,
        target_vocabulary=task.vocabulary,
        max_length=max(task.width(length)),
    )
