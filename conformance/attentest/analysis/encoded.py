"""The choices of a model that its encoder shows, where the output of the whole fits none."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from attentest.analysis.diagnosis.variants import Variant
from attentest.analysis.identify.measure import sizes_for
from attentest.faults import faults
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Answer, Probe, Subject
from attentest.harness.tolerances import as_floats
from attentest_spec import CHOICES, Backend, Choices
from attentest_spec.choices import Value
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import draw, learned_positions
from attentest_spec.setting import Array, Floats, Setting

_AXES = (
    *("positional_encoding", "embedding_scale", "norm_placement", "activation", "norm_epsilon"),
    "norm_epsilon_place",
)
_VARIANCE = "norm_variance"
"""The choice whose other options are tried where the first one fits with none of the others."""

_EPSILONS: tuple[Value, ...] = (1e-5, 1e-6, 1e-12)
CLOSE = 1e-6
"""Largest relative difference between the encoded source and that of the reference."""


def shown_in_parts(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options that parts of a model show, where its whole output fits none.

    Its encoder may be that of the reference, or the whole that of a known mistake beside others.
    `known` are other choices.
    """
    found = choices_of_encoder(backend, known)
    found |= scale_of_one_side(backend, {**known, **found})
    return {**found, **positions_of_mistakes(backend, {**known, **found})}


def choices_of_encoder(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the options under which a source is encoded as the reference does it, {} for none.

    A mistake in the decoder, or behind it, changes nothing of that. `known` are other choices.
    """
    try:
        probe, source = _encoding(backend, Choices.of(known))
        actual = as_floats(probe.output(source, method="encode"))
    except (Absent, BackendError, Violation):
        return {}
    room = CLOSE * float(np.abs(actual).max(initial=0))
    best, least = dict[str, Value](), room
    for variance, *values in product(*(options_of(name, known) for name in (_VARIANCE, *_AXES))):
        if best and variance != best[_VARIANCE]:
            break
        own = {_VARIANCE: variance, **dict(zip(_AXES, values, strict=True))}
        choices = Choices.of({**known, **own})
        with np.errstate(all="ignore"):  # a wrong option may overflow where the right one does not
            wanted = as_floats(probe.expected(source, method="encode", choices=choices).output)
        apart = float(np.abs(wanted - actual).max()) if wanted.shape == actual.shape else np.inf
        if apart < least:
            best, least = own, apart
    return best


def scale_of_one_side(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return that embeddings are scaled where the code scales those of one side alone, else {}.

    `known` are the other choices.
    """
    choices = Choices.of({**known, "embedding_scale": "none"})
    try:
        probe, source = _encoding(backend, choices)
        usual = list(range(probe.sizes.target_vocabulary))
        usual.remove(probe.sizes.target_pad)
        target = np.random.default_rng(1).choice(usual, size=source.shape)
        actual = as_floats(probe.output(source, target))
    except (Absent, BackendError, Violation):
        return {}
    for side in ("source", "target"):
        scaled = dict(probe.parameters)
        name = f"{side}_embedding.weight"
        if name not in scaled:
            return {}
        scaled[name] = scaled[name] * np.sqrt(probe.sizes.d_model)
        wanted = Answer.of(ORACLES["model"](Setting(probe.sizes, choices, scaled), source, target))
        if np.abs(wanted.output - actual).max() <= CLOSE * np.abs(actual).max():
            return {"embedding_scale": "sqrt-d"}
    return {}


@dataclass(frozen=True)
class Called:
    """A call of a whole model, whose output (B, T, V) that of known mistakes is compared with."""

    probe: Probe
    inputs: tuple[Array, Array]
    actual: Floats

    @classmethod
    def of(cls, backend: Backend, known: Mapping[str, Value], layers: int = 2) -> "Called | None":
        """Return a call under the choices `known`, None where it raises or trains positions.

        The model has so many `layers` at most.
        """
        choices = Choices.of(known)
        if learned_positions(choices):
            return None
        try:
            probe, source = _encoding(backend, choices, layers)
            target = source[:, ::-1] % probe.sizes.target_vocabulary
            return cls(probe, (source, target), as_floats(probe.output(source, target)))
        except (Absent, BackendError, Violation):
            return None

    def is_of(self, mistake: str, choices: Choices) -> bool:
        """Say whether a mistake of the catalogue gives this output, under `choices`."""
        variant = Variant({}, (faults()[mistake],), choices)
        part = variant.backend().build("model", self.probe.sizes)
        part.load(self.probe.parameters)
        wanted = as_floats(part(*self.inputs))
        return bool(np.abs(wanted - self.actual).max() <= CLOSE * np.abs(self.actual).max())


def positions_of_mistakes(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the choices of a model with positions on one side, or with a wrong table, else {}.

    `known` are the other choices.
    """
    found = positions_of_one_side(backend, known)
    return found or choices_beside_positions(backend, known)


def positions_of_one_side(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the positions that the code adds on one side alone, with its scale, else {}.

    `known` are the other choices. Without an option that fits, no positions may come closest.
    Trained ones show in the parameters.
    """
    if (called := Called.of(backend, known)) is None:
        return {}
    free = {name: one for name, one in known.items() if name not in _PLACED}
    for values in product(*(options_of(name, free) for name in _PLACED)):
        own = dict(zip(_PLACED, values, strict=True))
        names = ONE_SIDE if own["positional_encoding"] != "none" else ()
        if any(called.is_of(name, Choices.of({**known, **own})) for name in names):
            return own
    return {}


def choices_beside_positions(backend: Backend, known: Mapping[str, Value]) -> dict[str, Value]:
    """Return the other choices of a model whose table of positions is a known mistake, else {}.

    `known` are choices that are measured otherwise. The whole output has to be that of the mistake.
    """
    if (called := Called.of(backend, known)) is None:
        return {}
    # A scale that is measured beside wrong positions is one of no embedding.
    free = {name: one for name, one in known.items() if name not in _PLACED}
    options = [options_of(name, free)[:2] for name in _BESIDE]
    norms = [{**one, "norm_epsilon": epsilon} for one in _DIVISORS for epsilon in _EPSILONS]
    for plain, norm in product(product(*options), norms):
        own = {"positional_encoding": "interleaved", **dict(zip(_BESIDE, plain, strict=True))}
        own |= norm
        if any(called.is_of(name, Choices.of({**free, **own})) for name in TABLES):
            return own
    return {}


_BESIDE = ("embedding_scale", "norm_placement", "activation")
_DIVISORS: tuple[dict[str, Value], ...] = (
    {"norm_variance": "biased", "norm_epsilon_place": "inside-root"},
    {"norm_variance": "unbiased", "norm_epsilon_place": "added-to-deviation"},
)
"""The usual divisors of a norm: that of torch, and the deviation of a row."""
TABLES = (
    "positional_encoding.exponent-by-column",
    "positional_encoding.exponent-halved",
    "positional_encoding.exponent-doubled",
    "positional_encoding.cosines-missing",
    "positional_encoding.sines-and-cosines-swapped",
    "model.positions-twice",
    "model.positions-before-the-scale",
)
"""Mistakes in the table of positions, or in the sum with it, as code makes them."""

_PLACED = ("positional_encoding", "embedding_scale")
ONE_SIDE = ("model.positions-on-source-alone", "model.positions-on-target-alone")


def _encoding(backend: Backend, known: Choices, layers: int = 2) -> tuple[Probe, np.ndarray]:
    """Return a model with random parameters, and source tokens (2, 5) without padding."""
    subject = Subject(backend, choices=known, precision=backend.limits.finest)
    sizes = sizes_for(subject)
    sizes = subject.limits.fitted(sizes.but(layers=min(layers, sizes.layers)))
    rng = np.random.default_rng(0)
    probe = subject.part("model", sizes, parameters=draw("model", sizes, known, rng))
    tokens = [one for one in range(sizes.source_vocabulary) if one != sizes.source_pad]
    return probe, rng.choice(tokens, size=(2, min(5, sizes.max_length)))


def options_of(name: str, known: Mapping[str, Value]) -> list[Value]:
    """Return the options of the choice `name` that are tried: the one that is `known` alone."""
    if name in known:
        return [known[name]]
    if name == "norm_epsilon":
        return list(_EPSILONS)
    options: list[Value] = [one.name for one in CHOICES[name].options]
    if name == "positional_encoding":  # trained ones show in the parameters
        return [one for one in options if not learned_positions(Choices.of({name: one}))]
    return options
