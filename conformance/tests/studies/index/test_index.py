"""The silent-bug index over trainings of two steps."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import attentest
from attentest.faults import faults
from attentest.interfaces.cli.main import main
from attentest.interfaces.cli.training import index as command
from attentest.studies.index import index as module
from attentest.studies.index.evidence import Evidence
from attentest.studies.index.population import injected, population, sample
from attentest.studies.index.result import Index
from attentest.studies.learning.task import BadTask
from attentest.studies.sweep.training import built, train
from attentest_spec import UnknownName

SMALL: Mapping[str, Any] = {
    "steps": 2,
    "every": 2,
    "batch": 4,
    "validation": 4,
    "d_model": 8,
    "d_ff": 8,
    "heads": 2,
}
INVERTED = "masks.causal-inverted"  # the last query sees no key: its row is not finite


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMON", SMALL)


def test_every_mistake_with_a_result_in_what_is_trained_is_planted() -> None:
    left_out = Counter(one.component for one in faults().values() if injected(one) is None)
    whole = {"cached_language_model", "beam_search", "cached_decoding", "sampling", "packed_batch"}
    assert whole <= left_out.keys()
    assert len(population()) + sum(left_out.values()) == len(faults())
    in_models = {"model", "attention", "language_model", "causal_layer", "rms_norm"}
    trained = in_models | {"batch", "greedy_decoding"}
    several = [one for one in faults().values() if one.component in trained]
    assert {one.kind for one in several if injected(one) is None} == {"wording"}


DECODER_ONLY = ["language_model.mean-of-the-text", "rms_norm.mean-subtracted"]


def test_a_mistake_of_a_decoder_only_model_is_trained_in_one() -> None:
    whole = module.Whole.of(DECODER_ONLY, 0, ("translation",), 3)
    assert {one.regime.component for one in (*whole.correct, *whole.faulty)} == {"language_model"}
    usual, own = dict.fromkeys(one.levels["mistake"] for one in whole.correct)
    seeds = {
        kind: [one.seed for one in whole.correct if one.levels["mistake"] == kind]
        for kind in (usual, own)
    }
    assert seeds == {usual: [0, 1, 2, 3, 4, 5], own: [0, 1, 2]}
    assert "norm_kind=rms" in own
    assert "norm_kind=rms" not in usual
    for faulty in (whole.faulty[0], whole.faulty[3]):
        correct = next(one for one in whole.correct if one.choices == faulty.choices)
        assert train(faulty).points != train(correct).points


def test_the_range_of_the_seeds_is_that_of_the_same_kind_of_model() -> None:
    whole = module.Whole.of([INVERTED, DECODER_ONLY[0]], 0, ("copy",), 3)
    more = [one for one in whole.correct if one.seed > 2]
    assert [one.regime.component for one in more] == ["model"] * 3 + ["language_model"] * 3


def test_a_mistake_of_a_batch_is_trained_with() -> None:
    whole = module.Whole.of(["batch.target-not-shifted"], 0, ("copy",), 3)
    correct = next(train(one) for one in whole.correct if one.settings.get("parts") == "own")
    faulty = train(whole.faulty[0])
    assert correct.points[0] == faulty.points[0]
    assert correct.points[-1].training != faulty.points[-1].training


def test_a_mistake_of_an_optimiser_is_trained_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMON", {**SMALL, "steps": 3, "every": 3})
    slug = "optimiser.no-momentum"
    whole = module.Whole.of([slug], 0, ("copy",), 3)
    kind = {one.levels["mistake"] for one in whole.correct if "parts" in one.settings}
    assert len(kind) == 1
    assert "parts=own" in kind.pop()
    correct = next(train(one) for one in whole.correct if "parts" in one.settings)
    faulty = train(whole.faulty[0])
    assert correct.points[0] == faulty.points[0]
    assert correct.points[-1] != faulty.points[-1]


def test_a_mistake_that_needs_the_gradients_of_a_whole_run_is_in_no_training() -> None:
    several = [one for one in faults().values() if one.component == "optimiser"]
    outside = [one for one in several if injected(one) is None]
    assert {one.seam for one in outside} == {"optimise"}
    assert len(several) > 10 * len(outside)
    with pytest.raises(BadTask, match="No training of the index contains"):
        attentest.index([outside[0].slug])


def test_a_mistake_of_greedy_decoding_changes_accuracies_alone() -> None:
    whole = module.Whole.of(["decoding.least-token"], 0, ("translation",), 3)
    correct = next(train(one) for one in whole.correct if one.settings.get("parts") == "own")
    usual = next(train(one) for one in whole.correct if "parts" not in one.settings)
    faulty = train(whole.faulty[0])
    right, wrong, spec = (one.points[-1] for one in (correct, faulty, usual))
    assert (right.training, right.validation) == (wrong.training, wrong.validation)
    assert right.tokens == spec.tokens > wrong.tokens


@pytest.mark.parametrize("count", [60, 200])
def test_a_sample_has_of_every_component_its_share(count: int) -> None:
    every = population()
    chosen = sample(every, count)
    assert len(chosen) == count == len({one.slug for one in chosen})
    whole, part = (Counter(one.component for one in several) for several in (every, chosen))
    for name, size in whole.items():
        assert abs(part[name] - count * size / len(every)) < 1, name
    assert sample(every, 0) == every == sample(every, len(every) + 1)


@pytest.mark.proof
def test_the_kinds_of_models_of_the_index_can_be_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMON", {**SMALL, "steps": 30})  # beyond every warm-up
    whole = module.Whole.of((), 200, ("copy",), 3)
    assert len({one.levels["mistake"] for one in whole.correct}) > 20
    for plan in whole.correct:
        if plan.seed == 0:
            built(plan).build("model", plan.regime.sizes, precision="float32")


@pytest.mark.proof
def test_mistakes_are_counted_by_their_evidence() -> None:
    unchanged = "attention.dropout-in-evaluation"  # there is no dropout in these trainings
    found = attentest.index([INVERTED, unchanged], tasks=("copy", "translation"))
    assert [one.evidence for one in found.entries] == [Evidence.STOPS, Evidence.UNCHANGED]
    assert found.entries[0].by_task == dict.fromkeys(("copy", "translation"), Evidence.STOPS)
    assert found.rows()[-1] == ("all", "2", "1", "0", "0", "0", "0", "1")
    assert found.population + found.outside == len(faults())
    assert Index.from_dict(found.as_dict()) == found
    pytest.importorskip("pandas")
    assert list(found.frame()["evidence"]) == ["stops", "no number changes"]


@pytest.mark.proof
def test_the_mistake_and_the_seed_are_what_trainings_differ_in() -> None:
    whole = module.Whole.of([INVERTED], 0, ("copy",), 3)
    assert [one.seed for one in whole.correct] == [0, 1, 2, 3, 4, 5]
    assert [one.seed for one in whole.faulty] == [0, 1, 2]
    assert {one.fault for one in whole.faulty} == {INVERTED}
    assert len({train(one).key for one in (*whole.correct, *whole.faulty)}) == 9


def test_own_weights_are_those_of_the_seed() -> None:
    chosen = next(one.slug for one in population() if one.settings.get("initial") == "own")
    plans = [
        one
        for one in module.Whole.of([chosen], 0, ("copy",), 3).correct
        if "initial" in one.settings
    ]
    first, again, other = (train(plans[place]).points[-1] for place in (0, 0, 1))
    assert first == again != other


@pytest.mark.proof
def test_the_command_prints_the_counts_and_keeps_the_trainings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "cores", lambda: 0)  # in this process
    words = ["index", INVERTED, "--task", "copy", "--folder", str(tmp_path / "records")]
    out, picture = tmp_path / "index.json", tmp_path / "index.svg"
    runner = CliRunner(env={"COLUMNS": "80"})
    found = runner.invoke(main, [*words, "--json", str(out), "--plot", str(picture)])
    assert found.exit_code == 0, found.output
    assert (
        "Of 1 injected mistakes the curve of the training loss shows 0 (0%), and 1" in found.output
    )
    can = len(population())
    assert f"can contain {can} mistakes of the catalogue; {len(faults()) - can} others" in " ".join(
        found.output.split()
    )
    assert max(map(len, found.output.splitlines())) <= 80
    assert json.loads(out.read_text())["counts"]["stops"] == 1
    assert "<svg" in picture.read_text()
    assert len(list((tmp_path / "records").glob("*.jsonl"))) == 9


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("masks.causal-invrted",), "did you mean masks.causal-inverted"),
        (("beam_search.none",), "There is no fault named"),
        ((INVERTED, "--task", "sorting"), "There is no task of the index named 'sorting'"),
        ((INVERTED, "--seeds", "2"), "needs at least 3 different seeds"),
    ],
)
def test_an_index_that_cannot_be_is_refused(
    words: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    found = CliRunner().invoke(main, ["index", *words, "--folder", str(tmp_path)])
    assert found.exit_code == 2
    assert expected in " ".join(found.output.split())


def test_a_mistake_that_no_training_contains_is_refused() -> None:
    outside = next(one for one in faults().values() if one.component == "sampling")
    with pytest.raises(BadTask, match="No training of the index contains"):
        attentest.index([outside.slug])
    with pytest.raises(UnknownName):
        attentest.index(["attention.none-such"])
