"""Tables of positions as people compute them: in float32, by unlike formulas, all sound."""

import sys
from dataclasses import replace

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.analysis.identify.measurement import Measurement
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import Choices, Limits
from attentest_spec.torch import TorchBackend

FILE = SUPPORT / "wild" / "positions.py"

SINGLE = [
    "ByExponentialOfLogarithm",
    "ByPowers",
    "ByInversePowers",
    "ByOuterProduct",
    "InNumbersOfPython",
    "InHalves",
    "FromTheThirdRow",
    "MadeInEveryCall",
    "FromRoundedFrequencies",
]
"""Sound tables whose angles or numbers are rounded to float32."""

MISTAKEN = [
    "ExponentOff",
    "SinesSwapped",
    "BaseOfAThousand",
    "OneBehind",
    "DividedAsIntegers",
    "RoundedToHalf",
    "PositionsInHalf",
]
"""Tables in float32 with a mistake."""


@share(2)
@pytest.mark.parametrize("name", SINGLE)
def test_table_in_single_precision_is_measured_and_conforms(name: str) -> None:
    report = attentest.check(f"{FILE}:{name}", "positional_encoding")
    assert "position_arithmetic=float32, as measured" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert all(not verdict.status.broken for verdict in report), str(report)
    assert report["positional_encoding.arithmetic"].status == "deviation"


def test_table_of_a_fixed_length_is_judged_up_to_it() -> None:
    report = attentest.check(f"{FILE}:OfAFixedLength", "positional_encoding")
    assert "its table has 300 positions" in "\n".join(report.inferred)
    assert all(not verdict.status.broken for verdict in report), str(report)


@pytest.mark.parametrize("name", MISTAKEN)
def test_mistake_in_single_precision_is_found(name: str) -> None:
    declared = {"position_arithmetic": "float32", "position_offset": "none"}
    declared |= {"positional_encoding": "interleaved"}
    slugs = [f"positional_encoding.{one}" for one in ("formula", "arithmetic", "far-positions")]
    backend = attentest.adapted(f"{FILE}:{name}", "positional_encoding", choices=declared)
    bench = Bench.for_status(backend)
    assert any(judge(bench, slug).status == "violation" for slug in slugs)


@pytest.mark.parametrize("name", ["ByPowers", "ByExponentialOfLogarithm"])
def test_table_in_single_precision_that_is_not_declared_is_one_finding(name: str) -> None:
    recipes = attentest.adapted(f"{FILE}:{name}", "positional_encoding").recipes
    backend = TorchBackend(name="mine", title="", recipes=recipes, limits=Limits(dropout=False))
    report = attentest.check(backend, "positional_encoding")
    broken = [verdict for verdict in report if verdict.status.broken]
    assert [verdict.clause for verdict in broken] == ["positional_encoding.arithmetic"], str(report)
    assert "not declared" in broken[0].message
    assert "the numbers show float32" in broken[0].message


NAMED = "positional_encoding.odd-width-named"
"""The one clause about the wording of a refusal."""


@share(3)
@pytest.mark.parametrize(
    ("name", "warned"),
    [
        ("OddAsserted", [NAMED]),
        ("OddRefusedInWords", [NAMED]),
        ("OddRefusedByShapes", [NAMED]),
        ("OddRefusedWhenCalled", [NAMED]),
        ("OddRefusedByNumber", []),
    ],
)
def test_refused_odd_width_is_one_warning_at_most(name: str, warned: list[str]) -> None:
    read = attentest.adapted(f"{FILE}:{name}", "positional_encoding")
    assert not read.limits.odd_width
    assert "an odd model width is refused" in "\n".join(read.understood)  # type: ignore[attr-defined]
    declared = {"position_arithmetic": "float32"}
    same = TorchBackend(name="mine", title="", recipes=read.recipes, choices=declared)  # type: ignore[attr-defined]
    for target in (read, replace(same, limits=Limits(dropout=False))):
        report = attentest.check(target, "positional_encoding")
        assert report.conforms, str(report)
        assert [one.clause for one in report if one.status.broken] == warned, str(report)


@pytest.mark.parametrize(
    ("name", "status"),
    [("OddRefusedBesidesOne", "pass"), ("OddWithoutItsLastColumn", "violation")],
)
def test_wrong_odd_width_is_a_violation(name: str, status: str) -> None:
    clause = "positional_encoding.odd-width"
    report = attentest.check(f"{FILE}:{name}", "positional_encoding", clauses=[clause])
    assert report[clause].status == status


MODELS = SUPPORT / "wild" / "models.py"

MODEL = [f"model.{one}" for one in ("formula", "parameter-gradient", "padding-in-a-batch")]


@pytest.mark.proof
def test_model_around_a_table_in_single_precision_is_measured_and_conforms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured: list[Choices] = []
    take = Measurement.take
    monkeypatch.setattr(
        Measurement, "take", lambda one: measured.append(one.part.choices) or take(one)
    )
    # Its pad ids are 0, and nothing in its constructor says so: no check above pads with others.
    sys.path.insert(0, str(MODELS.parent))
    read = attentest.adapted(f"{MODELS}:TransformerInDouble", "model")
    # Once exactly, once with this table: a softmax in float32 would come no closer.
    assert [one.position_arithmetic for one in measured] == ["as-computed", "float32"]
    assert read.choices["position_arithmetic"] == "float32"
    assert "assumed position_arithmetic=float32, as measured" in "\n".join(read.understood)  # type: ignore[attr-defined]
    bench = Bench.for_status(replace(read, limits=replace(read.limits, pad=0)))  # type: ignore[type-var]
    for slug in MODEL:
        verdict = judge(bench, slug)
        assert verdict.status == "pass", verdict


@pytest.mark.exhaustive
def test_model_around_a_mistaken_table_in_single_precision_is_a_violation() -> None:
    sys.path.insert(0, str(MODELS.parent))
    declared = {"position_arithmetic": "float32"}
    read = attentest.adapted(f"{MODELS}:TransformerOfAnotherBase", "model", choices=declared)
    bench = Bench.for_status(replace(read, limits=replace(read.limits, pad=0)))  # type: ignore[type-var]
    assert judge(bench, "model.formula").status == "violation"
