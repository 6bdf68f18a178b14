"""Settles what a backend left undeclared where the paper is silent: measures it.

The paper names layer normalisation and gives no formula, so any listed one conforms. One that is
not declared is found by trying the options on one input at a small scale, where they differ.
"""

from itertools import product

import numpy as np

from attentest.compare import distance
from attentest.outcome import Absent, BackendError, Violation
from attentest.subject import Subject
from attentest_spec import CHOICES, Backend, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.parameters import draw

_AXES = ("norm_epsilon_place", "norm_variance", "norm_epsilon")
_EPSILONS = (1e-5, 1e-6, 1e-12, 1e-8, 1e-7, 1e-9, 1e-3, 0.0)


def settle(backend: Backend, precision: str = "float64", device: str = "cpu") -> Choices:
    """Return the choices that `backend` is judged under.

    Raises ValueError or UnknownName where its declaration is not well formed.
    """
    declared = Choices.of(backend.choices)
    open_axes = [axis for axis in _AXES if axis not in backend.choices]
    if not open_axes or "layer_norm" not in backend.components:
        return declared
    try:
        return _closest(backend, declared, open_axes, precision, device)
    except (Absent, BackendError, Violation):
        return declared  # the clauses will say what is wrong


def _closest(
    backend: Backend, declared: Choices, axes: list[str], precision: str, device: str
) -> Choices:
    subject = Subject(backend, choices=declared, precision=precision, device=device)
    sizes = Sizes(d_model=4)
    rng = np.random.default_rng(0)
    probe = subject.part("layer_norm", sizes, parameters=draw("layer_norm", sizes, declared, rng))
    rows = np.round(rng.normal(size=(4, 4)), 2) * np.array([[1.0], [1e-2], [1e-3], [1e-5]])
    actual = probe.output(rows)
    options: dict[str, list[Value]] = {
        "norm_epsilon_place": [option.name for option in CHOICES["norm_epsilon_place"].options],
        "norm_variance": [option.name for option in CHOICES["norm_variance"].options],
        "norm_epsilon": list(_EPSILONS),
    }
    candidates = [
        declared.but(**dict(zip(axes, values, strict=True)))
        for values in product(*(options[axis] for axis in axes))
    ]
    return min(
        candidates,
        key=lambda choices: distance(actual, probe.expected(rows, choices=choices)),
    )
