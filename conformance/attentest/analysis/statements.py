"""Measured statements: dropout sites and initialisation, for which the spec has no reference.

They are not judged but measured and reported, so that implementations can be compared. Everything
is measured from outside: dropout at a rate of 0.999 in training mode leaves nothing of what passes
through it, and the spread of a weight shows its scheme.
"""

from collections.abc import Callable, Mapping
from math import sqrt

import numpy as np

from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, largest
from attentest_spec import Sizes
from attentest_spec.parameters import draw
from attentest_spec.setting import Array, Floats

RATE = 0.999
SMALL = Sizes(
    d_model=8, heads=2, d_ff=12, layers=1, source_vocabulary=11, target_vocabulary=11, dropout=RATE
)
WIDE = Sizes(d_model=96, heads=4, d_ff=224, layers=1, source_vocabulary=211, target_vocabulary=211)


def statements(subject: Subject) -> dict[str, str]:
    """Return the statements by name; what cannot be measured is reported as unknown."""
    return {"dropout sites": _dropout_sites(subject), "initialisation": _initialisation(subject)}


def _dropout_sites(subject: Subject) -> str:
    if not subject.limits.dropout:
        return "none"
    sites = {
        "attention weights": _attention_weights,
        "feed-forward inner": _feed_forward_inner,
        "sublayer output": _sublayer_output,
        "embedding sum": _embedding_sum,
    }
    found = {site: _asked(subject, question) for site, question in sites.items()}
    present = [site for site, answer in found.items() if answer]
    unknown = [f"{site} unknown" for site, answer in found.items() if answer is None]
    return ", ".join(present + unknown) or "none"


def _asked(subject: Subject, question: Callable[[Subject], bool]) -> bool | None:
    try:
        return question(subject)
    except (Absent, BackendError, Violation, ValueError):
        return None


def _training(subject: Subject, component: str) -> tuple[Probe, Floats]:
    """Return a part in training mode with random weights, and an input for it."""
    rng = np.random.default_rng(7)
    parameters = draw(component, SMALL, subject.choices, rng)
    probe = subject.part(component, SMALL, parameters=parameters)
    probe.train()
    return probe, rng.normal(size=(2, 3, SMALL.d_model))


def _only(values: Array, constant: Array | None) -> bool:
    """Return whether almost every row is the `constant` alone: one in a thousand units survives."""
    rest = as_floats(values) - (0.0 if constant is None else constant)
    rows = np.abs(rest).max(axis=-1)
    return bool(np.median(rows) <= 1e-6 * (1.0 + largest(values)))


def _attention_weights(subject: Subject) -> bool:
    probe, x = _training(subject, "multi_head_attention")
    bias = probe.parameters.get("output.bias")
    return _only(probe.output(x, x, x, None), bias)


def _feed_forward_inner(subject: Subject) -> bool:
    probe, x = _training(subject, "feed_forward")
    return _only(probe.output(x), probe.parameters.get("outer.bias"))


def _sublayer_output(subject: Subject) -> bool:
    """Compare a layer in training with one whose branches give nothing: all of it is dropped."""
    probe, x = _training(subject, "encoder_layer")
    trained = probe.output(x, None)
    silent = {
        name: np.zeros_like(values) if ".outer." in name or ".output." in name else values
        for name, values in probe.parameters.items()
    }
    still = subject.part("encoder_layer", SMALL.but(dropout=0.0), parameters=silent)
    difference = np.abs(as_floats(trained) - as_floats(still.output(x, None)))
    return bool(np.median(difference) <= 1e-6 * (1.0 + largest(trained)))


def _embedding_sum(subject: Subject) -> bool:
    """Return whether the memory is the same at all positions with all dropout active."""
    rng = np.random.default_rng(7)
    parameters = draw("model", SMALL, subject.choices, rng)
    probe = subject.part("model", SMALL, parameters=parameters)
    probe.train()
    memory = as_floats(probe.output(rng.integers(1, 11, size=(2, 9)), method="encode"))
    difference = np.abs(memory - np.median(memory, axis=(0, 1)))
    return bool(np.median(difference) <= 1e-6 * (1.0 + largest(memory)))


def _initialisation(subject: Subject) -> str:
    try:
        initial = subject.part("model", WIDE).do(
            "exporting the initial parameters", lambda part: part.export()
        )
    except (Absent, BackendError, Violation):
        return "unknown"
    groups = {
        "projections": "self_attention.query.weight",
        "feed-forward": "feed_forward.inner.weight",
        "embeddings": "source_embedding.weight",
        "generator": "generator.weight",
    }
    return "; ".join(f"{group} {_scheme(initial, name)}" for group, name in groups.items())


def _scheme(initial: Mapping[str, Array], ending: str) -> str:
    """Name the scheme whose shape and spread the weight has, or give the spread."""
    weight = as_floats(next(values for name, values in initial.items() if name.endswith(ending)))
    outputs, inputs = weight.shape
    spread = float(weight.std())
    # A uniform draw never leaves root three deviations, a normal one of this size always does.
    flat = largest(weight) <= 1.8 * spread
    xavier, packed = sqrt(2 / (inputs + outputs)), sqrt(2 / (inputs + 3 * outputs))
    schemes = {
        "Xavier": xavier,
        "Xavier of the packed matrix": packed,
        "uniform within 1/sqrt(inputs)": 1 / sqrt(3 * inputs),
    }
    if not flat:
        schemes = {"N(0, 1)": 1.0, "N(0, 1/d)": 1 / sqrt(inputs), "Xavier (normal)": xavier}
    name, wanted = min(schemes.items(), key=lambda scheme: abs(scheme[1] - spread))
    return name if abs(wanted - spread) <= 0.05 * wanted else f"deviation {spread:.3g}"
