"""The mistakes that a small training can contain, with the choices and the settings they need."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.faults.catalogue import faults
from attentest.faults.fault import Fault
from attentest.faults.reference_models import DECLARED
from attentest.studies.learning.regime import DECODER_ONLY, ENCODER_DECODER, OWN
from attentest_spec.choices import Value
from attentest_spec.components import inside

MODEL = "plain"
"""The reference model that mistakes are injected into."""

RATE = 0.01
"""The constant learning rate, and the peak of every schedule."""

WARMUP = 20

DECAY = 0.1
"""The weight decay of optimisers that decay weights."""

_IN_MODEL: Mapping[str, Mapping[str, Mapping[str, Value]]] = {
    ENCODER_DECODER: {
        **{name: {} for name in inside("model") - {"rms_norm"}},
        "rotary": {"attention_rotary": "query-and-key"},
    },
    DECODER_ONLY: {
        "causal_layer": {},
        "language_model": {},
        "rms_norm": {"norm_kind": "rms", "norm_bias": "none"},
    },
}
"""The components that each kind of model contains, and the choices by which it contains them.

What both contain is trained in the first.
"""

_TRAINING_PARTS: Mapping[str, Mapping[str, Any]] = {
    "loss": {"smoothing": 0.1},
    "batch": {},
    "learning_rate": {"warmup": WARMUP},
    "gradient_clipping": {"clip": 1.0},
    "greedy_decoding": {},
    "optimiser": {"warmup": WARMUP},
}
"""The components that train or measure a model, and the settings under which they do something."""

_WHOLE_RUN = "optimise"
"""The hook that is given all gradients of a run at once, which no training has."""

_NO_RESULT = "wording"
"""The kind of mistakes that are wrong in the text of an error alone."""


@dataclass(frozen=True)
class Injected:
    """A mistake in a training: the choices of its model, and the settings of its regime.

    `slug` is "" for the model without a mistake.
    """

    slug: str
    component: str
    choices: Mapping[str, Value]
    settings: Mapping[str, Any]

    @property
    def usual(self) -> "Injected":
        """The training without a mistake whose range counts: that of the same kind of model."""
        return USUAL[self.settings.get("model", ENCODER_DECODER)]


def _of_model(kind: str) -> Mapping[str, Any]:
    """Return the settings of a training of a kind of model."""
    return {"rate": RATE} if kind == ENCODER_DECODER else {"rate": RATE, "model": kind}


USUAL = {kind: Injected("", "", DECLARED, _of_model(kind)) for kind in _IN_MODEL}
"""The trainings that most mistakes are injected into, for each kind of model."""


def injected(fault: Fault) -> Injected | None:
    """Return the training that contains `fault`; None where none of these trainings can."""
    if MODEL not in fault.models or fault.kind == _NO_RESULT or fault.seam == _WHOLE_RUN:
        return None
    for component in fault.changes:
        kind = next((kind for kind, parts in _IN_MODEL.items() if component in parts), None)
        if kind:
            choices = {**DECLARED, **_IN_MODEL[kind][component], **fault.choices}
            own_start = {"initial": OWN} if fault.chapter == "initialisation" else {}
            settings = {**_of_model(kind), **own_start}
            return Injected(fault.slug, fault.component, choices, settings)
        if component in _TRAINING_PARTS:
            return Injected(fault.slug, component, *_with_own_parts(fault, component))
    return None


def population() -> tuple[Injected, ...]:
    """Return all mistakes of the catalogue that these trainings can contain, in its order."""
    return tuple(one for fault in faults().values() if (one := injected(fault)) is not None)


def sample(several: Sequence[Injected], count: int) -> tuple[Injected, ...]:
    """Return `count` of the mistakes, in their order: from each component its share, at least one.

    Within a component they are taken at equal distances. Returns all where `count` is 0 or larger
    than their number; a `count` below the number of components is raised to it.
    """
    if not count or count >= len(several):
        return tuple(several)
    strata: dict[str, list[Injected]] = {}
    for one in several:
        strata.setdefault(one.component, []).append(one)
    shares = _shares({name: len(members) for name, members in strata.items()}, count)
    kept = {one.slug for name, members in strata.items() for one in _spread(members, shares[name])}
    return tuple(one for one in several if one.slug in kept)


def _shares(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """Return how many to take of each stratum: in proportion, the largest remainders rounded up."""
    whole = sum(sizes.values())
    exact = {name: count * size / whole for name, size in sizes.items()}
    shares = {name: max(1, int(one)) for name, one in exact.items()}
    by_remainder = sorted(exact, key=lambda name: shares[name] - exact[name])
    for name in by_remainder[: max(0, count - sum(shares.values()))]:
        shares[name] += 1
    return shares


def _spread(members: Sequence[Injected], count: int) -> Iterable[Injected]:
    return (members[(2 * place + 1) * len(members) // (2 * count)] for place in range(count))


def _with_own_parts(fault: Fault, component: str) -> tuple[dict[str, Value], dict[str, Any]]:
    """Return choices and settings of a training whose parts besides the model are its own."""
    choices = {**DECLARED, **fault.choices}
    settings: dict[str, Any] = {**_TRAINING_PARTS[component], "parts": OWN}
    if component == "loss":
        choices = {"output": choices["loss_input"], **choices}
    if component == "learning_rate":
        schedule = str(choices.get("schedule", "noam"))
        settings["schedule"] = schedule
        if schedule != "noam":  # whose peak the warm-up sets
            settings["factor"] = RATE
        return choices, settings
    if component == "optimiser":
        decay = choices.get("weight_decay", "none")
        decays = {} if decay == "none" else {"decay": decay, "weight_decay": DECAY}
        return choices, {**settings, **decays}
    return choices, {**settings, "rate": RATE}
