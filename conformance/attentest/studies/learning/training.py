"""Trains one model through the contract: forward, loss, backward, update; validates and saves."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import mean

import numpy as np

from attentest.harness.errors import Unavailable
from attentest.harness.subject import guarded
from attentest.studies.learning import learner
from attentest.studies.learning.bleu import bleu
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.decoding import Decoder, accuracies
from attentest.studies.learning.gradients import mean_norms, norms
from attentest.studies.learning.initial import roots, weights, whole
from attentest.studies.learning.learner import Layout, Trainable
from attentest.studies.learning.parts import Parts
from attentest.studies.learning.regime import EQUAL, OWN, Regime
from attentest.studies.learning.result import Point
from attentest_spec import Backend, Choices
from attentest_spec.optimiser import Moments
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

    part: Trainable
    layout: Layout
    regime: Regime
    seed: int
    state: State
    parts: Parts
    decoder: Decoder
    losses: list[float] = field(default_factory=list)  # since the last point
    norms: list[dict[str, float]] = field(default_factory=list)  # as well

    @classmethod
    def of(
        cls, backend: Backend, regime: Regime, seed: int, state: State | None = None
    ) -> "Trainer":
        """Build the model and put it where `state` is, or at its start.

        A backend's own optimiser has a state that no checkpoint holds: such a training starts anew
        where it is not done.
        """
        if regime.initial == OWN:
            _set_seed(backend, seed)
        part = learner.build(backend, regime)
        if "gradient" not in part.capabilities:
            raise Unavailable("its model offers no gradient, so that nothing can train it")
        layout = Layout(regime.component, regime.sizes, Choices.of(backend.choices))
        parts = Parts.of(backend, regime, layout.output)
        decoder = Decoder.of(part, parts, regime, layout.choices)
        if state is not None and not parts.resumes and state.step < regime.steps:
            state = None
        if state is not None:  # a file sorts names, and sums depend on their order
            names = [name for name in layout.shapes if name in state.parameters]
            state.parameters = {name: state.parameters[name] for name in names}
        made = cls(part, layout, regime, seed, state or State({}), parts, decoder)
        if state is None:
            made.state.parameters = made._start()
        elif state.first:
            flat = (made._flat(one) for one in (state.first, state.second))
            parts.moments = Moments(state.step, *flat)
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
        source, target = self._questions(number, regime.batch)
        begun, wanted = self.parts.trained_on(source, target)
        with guarded(f"training step {number}"):
            self._mode(training=True)
            output = self.part(source, begun)
        loss = self._loss(output, wanted)
        pull = self.parts.pull(output, wanted)
        with guarded(f"training step {number}"):
            pulled = self.part.vjp((source, begun), pull.astype(dtype(regime.precision)))
        gradients = self._gradients(pulled.parameters)
        self._update(gradients, number)
        self._load()
        self.losses.append(loss)
        self.norms.append(norms(gradients))
        state.step = number

    def _update(self, gradients: Mapping[str, Array], number: int) -> None:
        state = self.state
        counts = np.array([one.size for one in state.parameters.values()])
        values, gradient = self._flat(state.parameters), self._flat(gradients)
        state.parameters = self._named(self.parts.updated(values, gradient, counts, number))
        if moments := self.parts.moments:
            state.first, state.second = map(self._named, (moments.mean, moments.square))

    def _validate(self) -> None:
        regime = self.regime
        source, target = self._held_out()
        begun, wanted = self.parts.shifted(source, target)
        with guarded("validating model"):
            self._mode(training=False)
            output = self.part(source, begun)
        loss = self._loss(output, wanted, smoothing=0.0)
        written = self._written(source, target)
        tokens, sequences = accuracies(written[:, 1:], wanted, regime.sizes.target_pad)
        self.state.points.append(
            Point(
                step=self.state.step,
                training=mean(self.losses) if self.losses else None,
                validation=loss,
                tokens=tokens,
                sequences=sequences,
                trained=self._trained(),
                bleu=bleu(regime.of_task.text, written, target),
                gradients=mean_norms(self.norms),
            )
        )
        self.losses, self.norms = [], []

    def _trained(self) -> float | None:
        """Return the share of right training questions, for a task that has few of them."""
        if self.regime.of_task.every is None:
            return None
        source, target = self._questions(0, 1)
        pad = self.regime.sizes.target_pad
        return accuracies(self._written(source, target)[:, 1:], target[:, 1:], pad)[1]

    def _written(self, source: Array, target: Array) -> Array:
        with guarded("decoding with model"):
            self._mode(training=False)
            return self.decoder.written(source, target[:, :1].copy(), target.shape[1])

    def _questions(self, number: int, count: int) -> tuple[Array, Array]:
        regime = self.regime
        return regime.of_task.batch([self.seed, TRAINING, number], count, regime.trained_length)

    def _held_out(self) -> tuple[Array, Array]:
        regime, seed = self.regime, [self.seed, VALIDATION]
        return regime.of_task.batch(seed, regime.validation, regime.length, held_out=True)

    def _loss(self, output: Array, wanted: Array, smoothing: float | None = None) -> float:
        loss = self.parts.loss(output, wanted, smoothing)
        if not np.isfinite(loss):
            raise Unavailable(f"after {self.state.step} steps its loss is {loss}: it diverged")
        return loss

    def _start(self) -> dict[str, Array]:
        regime = self.regime
        wanted = dtype(regime.precision)
        if regime.initial == EQUAL:
            drawn = weights(self.layout, self.seed)
        else:
            with guarded("exporting the parameters of model"):
                drawn = self.part.export()
        kept = roots(drawn, self.layout.twins)
        return {name: values.astype(wanted) for name, values in kept.items()}

    def _load(self) -> None:
        with guarded("loading the parameters of model"):
            self.part.load(whole(self.state.parameters, self.layout.twins))

    def _flat(self, arrays: Mapping[str, Array]) -> Array:
        """Return the arrays of all parameters as one, in the order of the state."""
        return np.concatenate([arrays[name].ravel() for name in self.state.parameters])

    def _named(self, values: Array) -> dict[str, Array]:
        """Return what :meth:`_flat` put together, by names and in shapes."""
        table = self.state.parameters
        ends = np.cumsum([one.size for one in table.values()])[:-1]
        parts = np.split(values, ends)
        return {
            name: part.reshape(one.shape)
            for part, (name, one) in zip(parts, table.items(), strict=True)
        }

    def _gradients(self, found: Mapping[str, Array]) -> dict[str, Array]:
        """Return the gradients of the parameters; demand them in their shapes, and finite."""
        for name, values in self.state.parameters.items():
            if name not in found or found[name].shape != values.shape:
                raise Unavailable(f"it gives no gradient of the shape {values.shape} for {name}")
            if not np.isfinite(found[name]).all():
                raise Unavailable(
                    f"after {self.state.step} steps its gradient of {name} is not finite"
                )
        return {name: found[name] for name in self.state.parameters}

    def _demand_steadiness(self) -> None:
        """Refuse a model that is another one at each call: its gradient is not that of its loss."""
        source, target = self._questions(0, 1)
        begun, _ = self.parts.shifted(source, target)
        with guarded("training model"):
            self._mode(training=True)
            once, again = (self.part(source, begun) for _ in range(2))
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


def _set_seed(backend: Backend, seed: int) -> None:
    """Set the seed that a backend draws its own weights by, where it lets it be set."""
    setting = getattr(backend, "seed", None)
    if setting is not None:
        with guarded("setting the seed"):
            setting(seed)
