"""Failures that no mistake of the catalogue explains are not searched for in full again."""

from dataclasses import replace

import pytest
import torch

from attentest.judging import judge as judging
from attentest.judging.bench import Bench
from attentest.judging.searches import SEARCHES, Searches
from attentest.results.verdict import LikelyCause, Location, Status, Verdict
from attentest_spec.torch import Recipe, TorchBackend

CLAUSES = ["layer_norm.formula", "layer_norm.variance", "layer_norm.gradient"]


class Unfinished(torch.nn.LayerNorm):
    """Raises in every call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise TypeError("forward() takes 2 positional arguments but 4 were given")


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The clauses for which likely causes are searched in full; none is found."""
    found: list[str] = []

    def diagnose(broken, complain):
        if broken.in_full:
            found.append(broken.clause)
        return ()

    monkeypatch.setattr(judging, "diagnose", diagnose)
    return found


class Shifted(torch.nn.LayerNorm):
    """Adds what no mistake of the catalogue adds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + x.mean()


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


def test_wrong_numbers_of_one_line_are_searched_for_in_full_once(searched: list[str]) -> None:
    def broken(bench: Bench) -> list[str]:
        return [one for one in CLAUSES if judging.judge(bench, one).status == "violation"]

    plain = {"effort": 0.1, "shrink": False}
    assert len(broken(Bench(_backend(Shifted), **plain))) > 1
    assert searched == CLAUSES[:1]


def _wrong(location: Location | None, *diagnosis: LikelyCause) -> Verdict:
    violation = Verdict("mine", "model.formula", Status.VIOLATION, "It differs.")
    return replace(violation, location=location, diagnosis=diagnosis)


def test_searches_in_vain_are_counted_by_component() -> None:
    known = Searches()
    for _ in range(SEARCHES):
        assert not known.knows("model", None)
        known.add("model", _wrong(None), searched=True)
    assert known.knows("model", None)
    assert not known.knows("encoder", None)


def test_searches_in_short_and_with_an_answer_are_not_counted() -> None:
    known = Searches()
    for _ in range(SEARCHES):
        known.add("model", _wrong(None), searched=False)
        known.add("model", _wrong(None, LikelyCause("fault", ("a.b",), "")), searched=True)
    assert not known.knows("model", None)


def test_a_line_that_is_only_suspected_says_nothing_of_other_clauses() -> None:
    line = Location("model.py", 7, "x = x + y", "layers.0.residual sum", "", "")
    nearest = LikelyCause("fault", ("a.b",), "", missed=1)
    known = Searches()
    known.add("model", _wrong(line, nearest), searched=True)
    assert not known.knows("model", line)
    known.add("model", _wrong(replace(line, confirmed=True)), searched=True)
    assert known.knows("encoder", replace(line, step="residual sum"))


def test_a_line_with_a_known_mistake_is_not_searched_again() -> None:
    line = Location("model.py", 7, "x = x + y", "residual sum", "", "")
    known = Searches()
    known.add("model", _wrong(line, LikelyCause("fault", ("a.b",), "")), searched=True)
    assert known.knows("model", line)
    assert not known.knows("model", replace(line, line=8))
