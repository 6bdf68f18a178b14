"""Backends to set side by side: taken at their word, looked at once, or cut to some parts."""

from dataclasses import replace
from functools import cached_property

from attentest.analysis.identify import MEASURED, Finding
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.studies.comparison import EXAMPLES, Comparison
from attentest.studies.comparison.account import Account
from attentest.studies.comparison.compare import side_by_side, unlike
from attentest.studies.comparison.participant import Here
from attentest_spec import CHOICES, Backend, Choices
from attentest_spec.torch import TorchBackend

SMALL = EXAMPLES["small"]
ONE_LAYER = replace(SMALL, sizes=SMALL.sizes.but(layers=1))


class Known(Here):
    """A backend that is looked at once."""

    @cached_property
    def _account(self) -> Account:
        return super().account()

    def account(self) -> Account:
        return self._account


class Believed(Here):
    """A backend whose word is taken for its choices."""

    def account(self) -> Account:
        given, known = self.backend, Choices.of(self.backend.choices)
        found = {name: Finding(name, known[name], known[name], MEASURED) for name in CHOICES}
        return Account(given.name, given.title, tuple(given.components), given.limits, found)


def plain(**choices) -> Backend:
    return reference_backend(REFERENCE_MODELS["plain"], choices)


def believed(*backends: Backend, example=ONE_LAYER) -> Comparison:
    labels = unlike([one.name for one in backends])
    return side_by_side(dict(zip(labels, map(Believed, backends), strict=True)), example)


def choices_in(explanation) -> set[str]:
    return {flip.choice for flip in explanation.options}


def part_of(backend: TorchBackend, *components: str) -> TorchBackend:
    return replace(backend, recipes={name: backend.recipes[name] for name in components})
