"""The parts of a training besides the model: batch, loss, learning rate, clipping and optimiser.

They are those of the spec. A backend trains with its own where that is asked for, where it provides
them, and where they can do what is asked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from attentest.harness.subject import guarded
from attentest.studies.learning.regime import OWN, Regime
from attentest_spec import Backend, Choices, Incremental, Part, Setting, Unsupported
from attentest_spec.batch import batch
from attentest_spec.loss import loss, loss_gradient
from attentest_spec.optimiser import Moments, gradient_clipping, update
from attentest_spec.precision import dtype
from attentest_spec.schedule import learning_rate
from attentest_spec.setting import Array

PARTS = {
    "batch": "batch",
    "loss": "loss",
    "learning_rate": "learning rate",
    "gradient_clipping": "clipping",
    "optimiser": "optimiser",
}
"""The components that train a model, with their names for users."""


@dataclass
class Parts:
    """The parts that train one model under a regime.

    `given` is the setting of the spec's parts, `own` holds those of the backend by their
    components, and `origin` says of each whose it is and why. `moments` are those of the spec's
    optimiser.
    """

    given: Setting
    precision: str
    clip: float | None
    own: Mapping[str, Part]
    origin: dict[str, str]
    moments: Moments | None = None
    _feed: list[tuple[Array, float]] = field(default_factory=list, init=False)
    _updates: Iterator[Array] | None = field(default=None, init=False)

    @classmethod
    def of(cls, backend: Backend, regime: Regime, output: str) -> "Parts":
        """Return the parts for a model whose generator returns an `output` of this kind."""
        given = regime.setting(output)
        own: dict[str, Part] = {}
        origin: dict[str, str] = {}
        wanted = PARTS if regime.parts == OWN else ()
        for component in wanted:
            if component == "gradient_clipping" and regime.clip is None:
                continue
            reason = _unfit(backend, component, given)
            if not reason:
                with guarded(f"building {component}"):
                    part = backend.build(component, given.sizes, precision=regime.precision)
                reason = _unable(part, component)
            if not reason:
                own[component] = part
            origin[component] = f"the spec's, {reason}" if reason else _own(backend, component)
        return cls(given, regime.precision, regime.clip, own, origin)

    def shifted(self, source: Array, target: Array) -> tuple[Array, Array]:
        """Return what a decoder reads and what it has to give, each (B, T), by the spec.

        The model makes its own masks: those of the batch are not used.
        """
        begun, wanted, *_ = batch(self.given, source, target)
        return begun, wanted.copy()  # which the model cannot reach

    def trained_on(self, source: Array, target: Array) -> tuple[Array, Array]:
        """Return what :meth:`shifted` does, for a step of the training."""
        part = self.own.get("batch")
        if part is None:
            return self.shifted(source, target)
        with guarded("batch"):
            begun, wanted, *_ = part(source, target)
        return begun, wanted

    @property
    def resumes(self) -> bool:
        """Whether a training can go on from moments: a backend's own optimiser keeps its own."""
        return "optimiser" not in self.own

    def loss(self, output: Array, wanted: Array, smoothing: float | None = None) -> float:
        """Return the spec's loss per token, by which all are measured; `smoothing` as given."""
        given = self.given
        if smoothing is not None:
            given = Setting(given.sizes.but(smoothing=smoothing), given.choices)
        with np.errstate(all="ignore"):  # what is not finite is reported in words
            return float(loss(given, _bounded(given, output), wanted))

    def pull(self, output: Array, wanted: Array) -> Array:
        """Return the gradient of the loss that trains by the output (B, T, V)."""
        part = self.own.get("loss")
        if part is None:
            with np.errstate(all="ignore"):
                return loss_gradient(self.given, _bounded(self.given, output), wanted)
        with guarded("gradient of loss"):
            pulled = part.vjp((output, wanted), np.array(1.0)).inputs[0]
        return np.zeros_like(output) if pulled is None else pulled

    def rate(self, step: int) -> float:
        """Return the learning rate of `step`, which counts from 1."""
        part = self.own.get("learning_rate")
        if part is None:
            return float(learning_rate(self.given, step))
        with guarded("learning_rate"):
            return float(part(step))

    def updated(self, values: Array, gradient: Array, counts: Array, step: int) -> Array:
        """Return the parameters (N) after an update by their gradient (N), which may be clipped.

        `counts` says how many of the N numbers belong to each array.
        """
        rate, number = self.rate(step), dtype(self.precision)
        gradient = self._clipped(gradient, counts).astype(number)
        if "optimiser" in self.own:
            with guarded("update of optimiser"):
                return self._own_update(values, gradient, rate).astype(number)
        moments = self.moments or Moments.begin(values)
        after, self.moments = update(self.given, values, moments, gradient, rate)
        return after

    def _clipped(self, gradient: Array, counts: Array) -> Array:
        if self.clip is None:
            return gradient
        limit = np.array(self.clip)
        part = self.own.get("gradient_clipping")
        if part is None:
            return gradient_clipping(self.given, gradient, counts, limit)
        with guarded("gradient_clipping"):
            clipped: Array = part(gradient, counts, limit)
        return clipped

    def _own_update(self, values: Array, gradient: Array, rate: float) -> Array:
        if self._updates is None:
            part = self.own["optimiser"]
            assert isinstance(part, Incremental)
            self._updates = part.updates(values, iter(self._feed.pop, None))
        self._feed.append((gradient, rate))
        return next(self._updates)


def _bounded(given: Setting, output: Array) -> Array:
    """Return float64 output; a probability that rounded to zero is the smallest normal number."""
    values = output.astype(np.float64)
    if given.choices.loss_input == "probabilities":
        values = np.maximum(values, np.finfo(output.dtype).tiny)
    return values


def _unfit(backend: Backend, component: str, given: Setting) -> str:
    """Return why a backend's own component cannot do what is asked, "" where it can."""
    if component not in backend.components:
        return "for it provides none"
    choices, limits, sizes = Choices.of(backend.choices), backend.limits, given.sizes
    declared, wanted = choices.schedule, given.choices.schedule
    match component:
        case "loss" if choices.loss_input != given.choices.loss_input:
            return f"for its own takes {choices.loss_input}"
        case "loss" if limits.smoothing not in (None, sizes.smoothing):
            return f"for the label smoothing of its own is {limits.smoothing:g}"
        case "learning_rate" if declared != wanted:
            return f"for its own schedule is {declared}"
        case "learning_rate" if not limits.rate_factor and sizes.factor != 1:
            return "for its own takes no factor"
        case "optimiser" if given.choices.weight_decay not in ("none", choices.weight_decay):
            return "for its own does not decay weights so"
    return ""


def _unable(part: Part, component: str) -> str:
    """Return why a part that was built cannot be used, "" where it can."""
    if component == "loss" and "gradient" not in part.capabilities:
        return "for its own offers no gradient"
    if component == "optimiser":
        if not isinstance(part, Incremental):
            return "for its own takes all gradients at once"
        try:
            part.updates(np.zeros(1), iter(()))
        except Unsupported as refusal:
            return f"for {refusal}"
    return ""


_CHOICES: Mapping[str, tuple[str, ...]] = {
    "batch": (),
    "loss": ("smoothed_mass", "loss_normaliser", "loss_measure"),
    "learning_rate": ("first_step",),
    "gradient_clipping": ("clip_epsilon",),
    "optimiser": (
        "adam_beta1",
        "adam_beta2",
        "adam_epsilon",
        "adam_epsilon_place",
        "bias_correction",
    ),
}
"""The choices of each component that a training depends on."""


def _own(backend: Backend, component: str) -> str:
    """Return that the part is the backend's, and the choices of it that are not the spec's."""
    choices, usual = Choices.of(backend.choices), Choices()
    differing = [
        f"{name} is {choices[name]}" for name in _CHOICES[component] if choices[name] != usual[name]
    ]
    return "its own" + (f" ({', '.join(differing)})" if differing else "")
