"""Trains one model through the contract: forward, loss, backward, Adam; validates and saves."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import mean

import numpy as np

from attentest.harness.errors import Unavailable
from attentest.harness.subject import guarded
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.decoding import accuracies, greedy
from attentest.studies.learning.initial import roots, weights, whole
from attentest.studies.learning.loss import cross_entropy
from attentest.studies.learning.optimiser import Adam
from attentest.studies.learning.regime import EQUAL, Regime
from attentest.studies.learning.result import Point
from attentest_spec import Backend, Choices, Part
from attentest_spec.parameters import tied
from attentest_spec.precision import dtype
from attentest_spec.setting import Array

TRAINING, VALIDATION = 0, 1
"""The streams of questions that a seed gives."""

Keep = Callable[[State], None]
"""Called with the state at every point."""

Progress = Callable[[int], None]
"""Called with the number of steps that are done, after each."""


@dataclass
class Trainer:
    """A model on its way through a regime, from one seed."""

    part: Part
    choices: Choices
    regime: Regime
    seed: int
    state: State
    losses: list[float] = field(default_factory=list)  # since the last point

    @classmethod
    def of(
        cls, backend: Backend, regime: Regime, seed: int, state: State | None = None
    ) -> "Trainer":
        """Build the model and put it where `state` is, or at its start."""
        with guarded("building model"):
            part = backend.build("model", regime.sizes, precision=regime.precision)
        if "gradient" not in part.capabilities:
            raise Unavailable("its model offers no gradient, so that nothing can train it")
        choices = Choices.of(backend.choices)
        made = cls(part, choices, regime, seed, state or State({}))
        if state is None:
            made.state.parameters = made._born()
        made._load()
        made._demand_steadiness()
        return made

    def train(self, keep: Keep, progress: Progress) -> State:
        """Go on to the end of the regime; the state is kept at every point."""
        regime = self.regime
        if not self.state.points:
            self._timed(self._validate)
            keep(self.state)
        while self.state.step < regime.steps:
            self._timed(self._step)
            if self.state.step % regime.every == 0 or self.state.step == regime.steps:
                self._timed(self._validate)
                keep(self.state)
            progress(self.state.step)
        return self.state

    def _step(self) -> None:
        state, regime = self.state, self.regime
        number = state.step + 1
        seed = [self.seed, TRAINING, number]
        source, target = regime.of_task.batch(seed, regime.batch, regime.length)
        begun, wanted = target[:, :-1], target[:, 1:].copy()  # which the model cannot reach
        with guarded(f"training step {number}"):
            self._mode(training=True)
            output = self.part(source, begun)
        loss, pull = self._loss(output, wanted, regime.smoothing)
        with guarded(f"training step {number}"):
            pulled = self.part.vjp((source, begun), pull.astype(dtype(regime.precision)))
        self._demand_gradients(pulled.parameters)
        adam = Adam(first=state.first, second=state.second)
        rate = regime.schedule.rate(number)
        state.parameters = adam.update(state.parameters, pulled.parameters, number, rate)
        self._load()
        self.losses.append(loss)
        state.step = number

    def _validate(self) -> None:
        regime = self.regime
        source, target = regime.of_task.batch(
            [self.seed, VALIDATION], regime.validation, regime.length, held_out=True
        )
        wanted = target[:, 1:].copy()
        with guarded("validating model"):
            self._mode(training=False)
            output = self.part(source, target[:, :-1])
            written = greedy(self.part, source, target[:, :1], target.shape[1])
        loss, _ = self._loss(output, wanted)
        tokens, sequences = accuracies(written[:, 1:], wanted, regime.sizes.target_pad)
        trained = mean(self.losses) if self.losses else None
        self.state.points.append(Point(self.state.step, trained, loss, tokens, sequences))
        self.losses = []

    def _loss(self, output: Array, wanted: Array, smoothing: float = 0.0) -> tuple[float, Array]:
        pad = self.regime.sizes.target_pad
        with np.errstate(all="ignore"):  # what is not finite is told in words
            loss, pull = cross_entropy(output, wanted, self.choices.output, pad, smoothing)
        if not np.isfinite(loss):
            raise Unavailable(f"after {self.state.step} steps its loss is {loss}: it diverged")
        return loss, pull

    def _born(self) -> dict[str, Array]:
        regime = self.regime
        wanted = dtype(regime.precision)
        if regime.initial == EQUAL:
            drawn = weights(regime.sizes, self.choices, self.seed)
        else:
            with guarded("exporting the parameters of model"):
                drawn = self.part.export()
        return {name: values.astype(wanted) for name, values in roots(drawn, self._twins).items()}

    def _load(self) -> None:
        with guarded("loading the parameters of model"):
            self.part.load(whole(self.state.parameters, self._twins))

    @property
    def _twins(self) -> dict[str, str]:
        return tied("model", self.regime.sizes, self.choices)

    def _demand_gradients(self, gradients: Mapping[str, Array]) -> None:
        for name, values in self.state.parameters.items():
            if name not in gradients or gradients[name].shape != values.shape:
                raise Unavailable(f"it gives no gradient of the shape {values.shape} for {name}")

    def _demand_steadiness(self) -> None:
        """Refuse a model that is another one at each call: its gradient is not that of its loss."""
        regime = self.regime
        source, target = regime.of_task.batch([self.seed, TRAINING, 0], 1, regime.length)
        with guarded("training model"):
            self._mode(training=True)
            once, again = (self.part(source, target[:, :-1]) for _ in range(2))
        if not np.array_equal(once, again, equal_nan=True):
            raise Unavailable(
                "it answers otherwise at each call while training, though its dropout is 0; the "
                "gradient of one answer is not that of another's loss"
            )

    def _mode(self, *, training: bool) -> None:
        if "mode" in self.part.capabilities:
            (self.part.train if training else self.part.eval)()

    def _timed(self, action: Callable[[], None]) -> None:
        clock, processor = time.perf_counter(), time.process_time()
        action()
        self.state.seconds += time.perf_counter() - clock
        self.state.cpu_seconds += time.process_time() - processor
