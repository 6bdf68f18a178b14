"""The regime of a training: the task, the sizes, the steps, the constants, and where they start."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf
from typing import Any

from attentest.studies.comparison.example import BadExample, Example
from attentest.studies.learning.task import BadTask, Task
from attentest.studies.learning.tasks import TASKS
from attentest_spec import CHOICES, Choices, Limits, Setting, Sizes
from attentest_spec.names import require

EQUAL, OWN = "equal", "own"
"""Start of the training: weights that are the same for all, or each backend's own."""

SPEC = "spec"
"""The parts that train: those of the spec for all, or :data:`OWN` where a backend provides them."""

PRECISIONS = ("float32", "float64")
"""Precisions to train in, the first that all support: half precision needs more than Adam."""

DECAYS = ("decoupled", "coupled", "decoupled-after")

ENCODER_DECODER, DECODER_ONLY = "encoder-decoder", "decoder-only"
"""The kinds of models: the first is trained where nothing is asked for."""

MODELS = {ENCODER_DECODER: "model", DECODER_ONLY: "language_model"}
"""The component that a model of each kind is."""


@dataclass(frozen=True)
class Regime:
    """Everything that a learning curve depends on besides the backend and the seed.

    `every` so many steps the model is validated on `validation` questions that are held out. The
    names of the constants are those of the spec: `schedule`, `factor` and `warmup` of the learning
    rate, `smoothing` of labels, `beta1`, `beta2` and `epsilon` of Adam, `weight_decay` with its
    kind, `decay`; `train_length` is the length of the questions that are trained on, where it is
    not that of the held-out ones, `length`; `model` is one of :data:`MODELS`; `clip` is the largest
    norm of all gradients together. A constant `rate` takes the place of the schedule. `parts` is
    :data:`SPEC` or :data:`OWN`, `initial` :data:`EQUAL` or :data:`OWN`. Dropout is 0: data, weights
    and steps are to be equal.
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
    schedule: str = "noam"
    factor: float = 1.0
    warmup: int = 400
    smoothing: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    weight_decay: float = 0.0
    decay: str = DECAYS[0]
    clip: float | None = None
    parts: str = SPEC
    initial: str = EQUAL
    train_length: int | None = None
    model: str = ENCODER_DECODER

    @classmethod
    def of(cls, task: str = "copy", **asked: Any) -> "Regime":
        """Return the regime of a task with what is asked for; what is None is the task's own.

        `d_model`, `heads`, `d_ff` and `layers` are sizes. Raises UnknownName for a task or a way to
        start that is none, and :class:`BadTask` for numbers that cannot be.
        """
        chosen = TASKS[require("task", task, TASKS)]
        asked = {name: value for name, value in asked.items() if value is not None}
        usual = {"rate": None} if {"schedule", "factor"} & asked.keys() else {}
        given = {**SIZES, **chosen.usual, **usual, **asked}
        sizes = {name: given.pop(name) for name in SIZES}
        kind = require("kind of model", given.get("model", ENCODER_DECODER), MODELS)
        length = given.pop("length", chosen.length)
        steps = given.pop("steps", chosen.steps)
        every = given.pop("every", max(1, steps // POINTS))
        longest = max(length, given.get("train_length", length))
        made = cls(task, length, steps, every, sizes=_sizes(chosen, longest, sizes, kind), **given)
        made._check()
        return made

    def _check(self) -> None:
        require("way to start", self.initial, (EQUAL, OWN))
        if self.model == DECODER_ONLY and self.of_task.component != "model":
            raise BadTask(
                f"The task {self.task} trains an {self.of_task.component} alone; it has no model "
                f"that is {self.model}."
            )
        require("kind of parts", self.parts, (SPEC, OWN))
        require("kind of weight decay", self.decay, DECAYS)
        require("schedule", self.schedule, CHOICES["schedule"].names)
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
        self._check_constants()
        self._check_lengths()
        for length, side in ((self.trained_length, False), (self.length, True)):
            self.of_task.batch([0], 1, length, held_out=side)

    def _check_constants(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise BadTask(
                f"Label smoothing is at least 0 and less than 1; {self.smoothing} is not."
            )
        if not 0 <= self.weight_decay < inf:
            raise BadTask(f"Weight decay is a number of at least 0; {self.weight_decay} is not.")
        for name in ("rate", "factor", "clip"):
            value = getattr(self, name)
            if value is not None and not 0 < value < inf:
                raise BadTask(f"{_NAMES.get(name, name)} is greater than 0; {value} is not.")
        if self.rate is not None and (self.schedule, self.factor) != ("noam", 1.0):
            raise BadTask("A constant rate has no schedule and no factor. Give one or the other.")
        if self.schedule in ("linear", "cosine") and self.warmup >= self.steps:
            raise BadTask(
                f"The schedule {self.schedule} ends at step {self.steps}; its warm-up of "
                f"{self.warmup} steps has to be shorter."
            )
        try:
            self.setting("logits")
        except ValueError as wrong:
            raise BadTask(str(wrong)) from wrong

    def _check_lengths(self) -> None:
        """Refuse a length to train at of a task whose tokens mean something else at another one."""
        lengths = self.length, self.trained_length
        if self.trained_length < 1:
            raise BadTask(f"train_length is at least 1; {self.trained_length} is not.")
        if len({self.of_task.vocabularies(one) for one in lengths}) > 1:
            raise BadTask(
                f"The task {self.task} has another vocabulary at each length: it cannot be trained "
                f"at length {lengths[1]} and validated at length {lengths[0]}."
            )

    @property
    def trained_length(self) -> int:
        """The length of the questions that are trained on."""
        return self.length if self.train_length is None else self.train_length

    @property
    def of_task(self) -> Task:
        """The task by its name."""
        return TASKS[self.task]

    @property
    def component(self) -> str:
        """The component that is trained: what the task says, a model of the kind asked for."""
        task = self.of_task.component
        return MODELS[self.model] if task == "model" else task

    def setting(self, output: str) -> Setting:
        """Return the setting of the spec's parts, for a generator that returns an `output`.

        A constant rate is the constant schedule, with a peak at the first step.
        """
        sizes = self.sizes.but(
            smoothing=self.smoothing,
            warmup=1 if self.rate else self.warmup,
            factor=self.rate or self.factor,
            total_steps=self.steps,
            weight_decay=self.weight_decay,
        )
        choices = Choices(
            loss_input=output,
            schedule="constant" if self.rate else self.schedule,
            adam_beta1=self.beta1,
            adam_beta2=self.beta2,
            adam_epsilon=self.epsilon,
            weight_decay=self.decay if self.weight_decay else "none",
            decoding_stop="end-token" if self.of_task.ends else "length",
        )
        return Setting(sizes, choices)

    def fitted(self, limits: Mapping[str, Limits]) -> tuple["Regime", tuple[str, ...]]:
        """Return it inside the `limits` of all backends, by their names, and what was changed.

        Raises :class:`BadTask` where nothing suits all of them.
        """
        try:
            # A fixed smoothing is that of a backend's own loss, which is not always used.
            models = {name: replace(one, smoothing=None) for name, one in limits.items()}
            fitted = Example(self.sizes, (), ()).fitted(models)
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

_NAMES = {
    "d_model": "width (d_model)",
    "d_ff": "inner width (d_ff)",
    "rate": "A learning rate",
    "factor": "The factor of learning rates",
    "clip": "The norm at which gradients are clipped",
}
"""Names of the sizes for users: as an option of the command, and in Python."""

COUNTS = ("length", "steps", "every", "batch", "validation", "warmup")

POINTS = 20
"""Number of validations by default."""


def _sizes(task: Task, length: int, sizes: Mapping[str, int], kind: str) -> Sizes:
    """Return the sizes of a model; one that reads source and target as one text has one table."""
    (source, target), widths = task.vocabularies(length), task.width(length)
    joined = kind == DECODER_ONLY
    return Sizes(
        **sizes,
        source_vocabulary=source,
        target_vocabulary=max(source, target) if joined else target,
        max_length=sum(widths) if joined else max(widths),
    )
