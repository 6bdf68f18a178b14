"""Backends to compare: trusted in their declaration, looked at once, or cut to some parts."""

from dataclasses import replace
from functools import cache
from typing import Any

from attentest.analysis.identify import MEASURED, Finding
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.studies.comparison import EXAMPLES, Comparison
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.compare import side_by_side, unlike
from attentest.studies.comparison.participant import methods
from attentest.studies.participants import Local
from attentest_spec import CHOICES, Backend, Choices
from attentest_spec.torch import TorchBackend

SMALL = EXAMPLES["small"]
ONE_LAYER = replace(SMALL, sizes=SMALL.sizes.but(layers=1))


def known(backend: Backend) -> Local:
    """Return a participant that is looked at once."""
    asked = methods(backend)
    return Local({**asked, "account": cache(asked["account"])})


def trusted(backend: Backend) -> Local:
    """Return a participant whose declaration is taken for its choices."""

    def account() -> dict[str, Any]:
        declared = Choices.of(backend.choices)
        found = {name: Finding(name, declared[name], declared[name], MEASURED) for name in CHOICES}
        return Account(
            backend.name, backend.title, tuple(backend.components), backend.limits, found
        ).as_dict()

    return Local({**methods(backend), "account": account})


def plain(**choices) -> Backend:
    return reference_backend(REFERENCE_MODELS["plain"], choices)


def believed(*backends: Backend, example=ONE_LAYER) -> Comparison:
    labels = unlike([one.name for one in backends])
    return side_by_side(dict(zip(labels, map(trusted, backends), strict=True)), example)


def choices_in(explanation) -> set[str]:
    return {flip.choice for flip in explanation.options}


def part_of(backend: TorchBackend, *components: str) -> TorchBackend:
    return replace(backend, recipes={name: backend.recipes[name] for name in components})
