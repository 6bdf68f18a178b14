"""Mistakes of the catalogue about caches, compared with the steps of a decoder-only model."""

from dataclasses import replace

import numpy as np

from attentest.analysis.diagnosis.variants import singles
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.language_models.steps.trials import COMPONENT, Trial
from attentest.targets.language_models.written import LanguageAdapter
from attentest_spec import Choices
from attentest_spec.parameters import draw

SECONDS = 6.0
"""Time limit for trying catalogued mistakes."""


def is_known_mistake(adapter: LanguageAdapter, trial: Trial) -> bool:
    """Say whether a mistake of the catalogue about caches gives exactly the numbers of a trial."""
    if trial.actual is None:
        return False
    declared = Choices.of(adapter.choices)
    parameters = draw(COMPONENT, trial.sizes, declared, np.random.default_rng(1))
    clock = Clock(SECONDS)
    for variant in singles(declared, COMPONENT, ""):
        if clock.rings():
            return False
        if not any(one.slug.startswith("language_model.cached") for one in variant.faults):
            continue
        try:
            part = variant.backend().build(COMPONENT, trial.sizes)
            part.load(parameters)
            given = np.asarray(part(*trial.inputs), dtype=np.float64)
        except Exception:  # a mistake may show itself by raising
            continue
        if replace(trial, expected=given).right():
            return True
    return False
