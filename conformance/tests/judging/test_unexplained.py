"""The same exception in many clauses is searched for in the catalogue once."""

import pytest
import torch

from attentest.judging import judge as judging
from attentest.judging.bench import Bench
from attentest_spec.torch import Recipe, TorchBackend

CLAUSES = ["layer_norm.formula", "layer_norm.variance", "layer_norm.gradient"]


class Unfinished(torch.nn.LayerNorm):
    """Raises in every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise TypeError("forward() takes 2 positional arguments but 4 were given")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clauses for which likely causes are searched; none is found."""
    found: list[str] = []

    def diagnose(broken, complain):
        found.append(broken.clause)
        return ()

    monkeypatch.setattr(judging, "diagnose", diagnose)
    return found


def _backend(layer: type[torch.nn.LayerNorm]) -> TorchBackend:
    recipe = Recipe(
        build=lambda sizes: layer(sizes.d_model), parameters={"gain": "weight", "bias": "bias"}
    )
    return TorchBackend(name="unfinished", title="", choices={}, recipes={"layer_norm": recipe})


def test_exception_without_an_explanation_is_searched_for_once(searched: list[str]) -> None:
    bench = Bench(_backend(Unfinished), effort=0.1, shrink=False)
    verdicts = [judging.judge(bench, clause) for clause in CLAUSES]
    assert {one.status for one in verdicts} == {"error"}
    assert searched == CLAUSES[:1]


def test_wrong_numbers_are_searched_for_in_every_clause(searched: list[str]) -> None:
    class Shifted(torch.nn.LayerNorm):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + x.mean()

    bench = Bench(_backend(Shifted), effort=0.1, shrink=False)
    broken = [one for one in CLAUSES if judging.judge(bench, one).status == "violation"]
    assert len(broken) > 1
    assert searched == broken
