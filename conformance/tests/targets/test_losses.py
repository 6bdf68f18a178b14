"""Losses that were not written for the contract: read, put behind it, and judged."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import SUPPORT
from proof import share
from torch.nn import functional

from attentest import adapted
from attentest.harness.reproduction import Build, Call
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Unclear
from attentest.targets.resolve import load
from attentest_spec import Sizes
from attentest_spec.clauses import clauses

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))

CORRECT: list[tuple[str, dict[str, Any], set[str]]] = [
    (
        "LabelSmoothing",
        {"smoothed_mass": "other-real-words", "loss_measure": "divergence"},
        {"(B * T, V)", "size=target_vocabulary", "smoothing=smoothing"},
    ),
    (
        "SimpleLossCompute",
        {"loss_input": "log-probabilities", "loss_normaliser": "tokens"},
        {"norm given as the number of targets", "is always 0.1"},
    ),
    ("loss_function", {"loss_input": "logits"}, {"assumed that the pad id is always 0"}),
    (
        "label_smoothed_nll_loss",
        {"smoothed_mass": "other-words", "loss_normaliser": "none"},
        {"epsilon=smoothing", "ignore_index=target_pad"},
    ),
    ("LabelSmoother", {"smoothed_mass": "all-words"}, {"writes padding as -100"}),
    ("compute_loss", {"loss_normaliser": "tokens"}, {"writes padding as -1,"}),
    ("masked_loss", {"loss_without_targets": "nan"}, {"mask: keep", "target=labels"}),
    (
        "sentence_loss",
        {"loss_input": "probabilities", "loss_normaliser": "sentences"},
        {"it has none"},
    ),
    ("every_loss", {"loss_input": "logits"}, {"padding counts, and this is a mistake"}),
]
MISTAKEN = {
    "padded_loss": "loss.smoothing-ignores-padding",
    "mean_of_means_loss": "loss.parts-recombine",
}


def wild(name: str, **reading: Any) -> Any:
    return load(f"{WILD / 'loss.py'}:{name}", reading)


def statuses(backend: Any, effort: float = 0.2) -> dict[str, str]:
    bench = Bench.for_status(backend, effort=effort)
    return {slug: judge(bench, slug).status.value for slug in clauses() if slug.startswith("loss.")}


@share(2)
@pytest.mark.parametrize(("name", "choices", "said"), CORRECT)
def test_correct_loss_is_understood_and_conforms(
    name: str, choices: dict[str, Any], said: set[str]
) -> None:
    backend = wild(name)
    assert {one: backend.choices[one] for one in choices} == choices
    text = "\n".join(backend.understood)
    assert [words for words in said if words not in text] == []
    found = list(statuses(backend).values())
    assert set(found) <= {"pass", "deviation", "warning", "absent"}
    assert found.count("pass") > 15


@pytest.mark.parametrize(("name", "clause"), MISTAKEN.items())
def test_mistaken_loss_is_a_violation(name: str, clause: str) -> None:
    verdict = judge(Bench.for_status(wild(name)), clause)
    assert verdict.status == "violation"


def test_loss_of_torch_conforms() -> None:
    for target in ("torch.nn:CrossEntropyLoss", "torch.nn.functional:cross_entropy"):
        assert set(statuses(load(target)).values()) <= {"pass", "warning", "absent"}, target


def test_loss_that_shifts_its_target_is_a_question() -> None:
    with pytest.raises(Unclear, match="shifts the target itself"):
        wild("shifted_loss")


def test_loss_that_no_option_gives_is_a_question() -> None:
    def loss(logits: Any, target: Any, pad: int) -> Any:
        return logits.square().mean()

    from attentest.targets.adapt.adaptation import adapt
    from attentest.targets.adapt.reading import Reading

    with pytest.raises(Unclear, match="under no option"):
        adapt(loss)
    declared = Reading(choices={"loss_input": "logits", "loss_normaliser": "tokens"})
    backend = adapt(loss, declared)
    verdict = judge(Bench.for_status(backend), "loss.formula")
    assert verdict.status == "violation"


def _counting(logits: Any, target: Any, *, first: int = 0, part: float = 1.0) -> Any:
    logs = logits.log_softmax(-1)
    picked = logs.gather(-1, target.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(picked * (target >= first)).mean() * part


def test_loss_that_counts_every_target_is_given_no_padding() -> None:
    def loss(logits: Any, target: Any) -> Any:
        return _counting(logits, target)

    backend = adapted(loss, "loss")
    assert not backend.limits.padded_targets
    assert "no target is padding" in "\n".join(backend.assumed)
    found = statuses(backend)
    assert set(found.values()) <= {"pass", "absent", "warning"}
    assert found["loss.formula"] == found["loss.parts-recombine"] == "pass"
    assert found["loss.padding-ignored"] == "absent"
    with pytest.raises(Unclear, match="Nothing says which targets of loss are padding"):
        adapted(loss, "loss", strict=True)


def test_loss_that_leaves_a_word_out_of_the_sum_alone_asks_for_the_padding() -> None:
    def loss(logits: Any, target: Any) -> Any:
        return _counting(logits, target, first=1)

    with pytest.raises(Unclear, match="Nothing says which targets of loss are padding"):
        adapted(loss, "loss")


def test_mistake_in_a_loss_that_counts_every_target_is_no_assumption() -> None:
    def loss(logits: Any, target: Any) -> Any:
        return _counting(logits, target, part=0.5)

    with pytest.raises(Unclear, match="under no option"):
        adapted(loss, "loss")


def test_strict_reading_takes_the_options_of_the_paper() -> None:
    backend = wild("label_smoothed_nll_loss", strict=True)
    assert "smoothed_mass" not in backend.choices
    verdict = judge(Bench.for_status(backend), "loss.smoothed-mass")
    assert verdict.status == "violation"


@pytest.mark.parametrize("name", ["LabelSmoothing", "compute_loss", "masked_loss"])
def test_reproduction_gives_the_loss_without_the_suite(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    backend = wild(name)
    sizes = Sizes(target_vocabulary=5, target_pad=3, smoothing=backend.limits.smoothing or 0.0)
    rng = np.random.default_rng(1)
    inputs = (rng.normal(size=(2, 3, 5)), np.array([[1, 2, 3], [4, 3, 3]]))
    code = backend.reproduction_script([Build(0, "loss", sizes, "float64", "cpu"), Call(0, inputs)])
    assert "attentest" not in code.replace(str(WILD), "")
    exec(compile(code, name, "exec"), {})
    shown = float(capsys.readouterr().out.partition("(")[2].partition(",")[0])
    assert shown == pytest.approx(float(backend.build("loss", sizes)(*inputs)), rel=1e-6)


@pytest.mark.parametrize("name", ["LabelSmoothing", "compute_loss", "SimpleLossCompute"])
def test_written_adapter_conforms(name: str, tmp_path: Path) -> None:
    file = tmp_path / "adapter.py"
    file.write_text(wild(name).written(), encoding="utf-8")
    written = load(str(file))
    verdict = judge(Bench.for_status(written), "loss.padding-ignored")
    assert verdict.status == "pass", verdict.message


def test_loss_that_views_its_targets_conforms_and_is_warned_about() -> None:
    def viewed(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        flat = logits.view(-1, logits.size(-1))
        return functional.cross_entropy(flat, targets.view(-1), ignore_index=0)

    found = statuses(adapted(viewed, "loss"), 0.1)
    assert found["loss.slices-accepted"] == "warning"
    assert found["loss.any-memory-layout"] == "absent"
    assert set(found.values()) <= {"pass", "deviation", "absent", "warning"}


ARRAYS = """
import numpy as np


def cross_entropy_loss(logits, targets, pad=0):
    z = logits - np.max(logits, axis=-1, keepdims=True)
    logp = z - np.log(np.exp(z).sum(-1, keepdims=True))
    keep = targets != pad
    picked = np.take_along_axis(logp, targets[..., None], -1)[..., 0]
    return -(picked * keep).sum() / keep.sum()
"""


def test_loss_of_arrays_is_judged(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ARRAYS)
    found = statuses(adapted(f"{tmp_path / 'own.py'}:cross_entropy_loss"), 0.1)
    assert set(found.values()) <= {"pass", "deviation", "absent", "warning"}
    assert [found[one] for one in ("loss.formula", "loss.gradient")] == ["pass", "absent"]
    (tmp_path / "own.py").write_text(ARRAYS.replace("keep.sum()", "keep.size"))
    wrong = statuses(adapted(f"{tmp_path / 'own.py'}:cross_entropy_loss"), 0.5)
    assert wrong["loss.formula"] == "violation"
