"""Beam searches of users are called with a scripted model; their options are measured."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from folders import SUPPORT
from proof import share
from test_training_styles import module_of

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt import Reading, Unclear
from attentest.targets.adapt.adaptation import adapt
from attentest.targets.searches.classes import as_function
from attentest.targets.searches.hypotheses import hypotheses_of

FILE: Path = SUPPORT / "wild" / "training" / "beams.py"
CLAUSES = [f"decoding.beam-{one}" for one in ("formula", "stop", "exact-length", "shapes")]
IN_BEAM = {"choices": {"finished_beams": "in-beam", "length_penalty": "none"}}

CORRECT: list[tuple[str, dict[str, str], str]] = [
    ("beam_search", {"length_penalty": "none"}, "the best hypothesis alone is judged"),
    ("beam_decode", {"length_penalty": "power", "finished_beams": "set-aside"}, "one sequence"),
    ("batch_beam_search", {"length_penalty": "wu"}, "it computes in float32, in part at least"),
    ("BeamSearch", {"beam_stop": "n-finished"}, "source=src"),
    ("BeamTranslator", {"finished_beams": "in-beam"}, "does not contain the given tokens"),
    ("beam_translate", {"output": "probabilities", "length_penalty": "power"}, "batch first"),
]

WRONG: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("beam_search", {}, "reverse=True)[:beam_size]", "reverse=False)[:beam_size]", "listed"),
    ("beam_search", IN_BEAM, "score + value", "value", "formula"),
    ("beam_search", IN_BEAM, "seq[-1] == end_symbol:\n", "False:\n", "formula"),
    ("beam_decode", {}, "/ (len(tokens) - 1) **", "* (len(tokens) - 1) **", "listed"),
    ("BeamTranslator", IN_BEAM, "toks[1:-1] if end else toks[1:]", "toks[1:-1]", "formula"),
]


def judged(thing: Any, **reading: Any) -> tuple[Any, dict[str, str]]:
    name, module = thing
    backend = adapt(getattr(module, name), Reading(**reading), name, module)
    bench = Bench.for_status(backend, effort=0.0)
    found = {slug: judge(bench, slug) for slug in CLAUSES}
    return backend, {slug: one.message for slug, one in found.items() if one.status.fails}


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(("name", "choices", "said"), CORRECT)
def test_correct_beam_search_conforms(name: str, choices: dict[str, str], said: str) -> None:
    backend, wrong = judged((name, module_of("beams")))
    assert wrong == {}
    assert choices.items() <= dict(backend.choices).items()
    assert said in "\n".join(backend.understood)


@share(3)
@pytest.mark.parametrize(("name", "reading", "old", "new", "clause"), WRONG)
def test_wrong_beam_search_is_found_or_asked_about(
    name: str, reading: dict[str, Any], old: str, new: str, clause: str
) -> None:
    text = FILE.read_text()
    assert old in text
    thing = name, module_of("beams", text.replace(old, new))
    if clause == "listed":
        with pytest.raises(Unclear, match="those of no listed beam search"):
            judged(thing, **reading)
        return
    _, wrong = judged(thing, **reading)
    assert f"decoding.beam-{clause}" in wrong


@pytest.mark.proof
def test_scores_of_the_model_that_are_added_up_are_an_assumption() -> None:
    old = "functional.log_softmax(model.generator(out[:, -1]), dim=-1)[0]"
    text = FILE.read_text().replace(old, "model.generator(out[:, -1])[0]")
    module = module_of("beams", text)
    backend = adapt(module.beam_search, None, "beam_search", module)
    assert "assumed that its model returns log-probabilities" in "\n".join(backend.assumed)
    said = Reading(choices={"output": "logits", **IN_BEAM["choices"]})
    backend = adapt(module.beam_search, said, "beam_search", module)
    bench = Bench.for_status(backend)
    assert judge(bench, "decoding.beam-probabilities").status.fails


def test_adapter_of_a_beam_search_is_a_file_that_holds_its_options() -> None:
    module = module_of("beams")
    backend = adapt(module.beam_decode, None, "beam_decode", module)
    names: dict[str, Any] = {}
    exec(compile(backend.written(), "adapter.py", "exec"), names)
    assert dict(names["backend"].choices) == dict(backend.choices)
    assert "'beams': 'beam_width'" in backend.written()


def test_search_without_a_width_and_class_without_a_method_are_questions() -> None:
    def beam_search(model, src, max_len, start, end):
        return src

    with pytest.raises(Unclear, match="--argument beams=NAME"):
        adapt(beam_search)
    with pytest.raises(Unclear, match="has no method that decodes"):
        as_function(Path, "Path")


@pytest.mark.parametrize(
    ("result", "alone", "expected"),
    [
        (torch.tensor([1, 2]), True, [[([1, 2], None)]]),
        (torch.tensor([[1, 2], [3, 4]]), True, [[([1, 2], None), ([3, 4], None)]]),
        (torch.tensor([[1, 2], [3, 4]]), False, [[([1, 2], None)], [([3, 4], None)]]),
        (([1, 2], -0.5), True, [[([1, 2], -0.5)]]),
        ([([1, 2], -0.5), ([1, 3], -0.7)], True, [[([1, 2], -0.5), ([1, 3], -0.7)]]),
        ([(-0.5, [1, 2])], True, [[([1, 2], -0.5)]]),
        ((torch.tensor([[[1, 2]]]), torch.tensor([[-1.0]])), False, [[([1, 2], -1.0)]]),
        ((torch.tensor([[[1, 2]]]), torch.tensor([[-1.0]])), True, [[([1, 2], -1.0)]]),
        ([[([1], -math.inf)]], False, [[([1], -math.inf)]]),
    ],
)
def test_results_are_read_as_hypotheses(result: Any, alone: bool, expected: Any) -> None:
    assert hypotheses_of(result, alone=alone) == expected


@pytest.mark.parametrize("result", [None, "text", [{"a": 1}]])
def test_other_results_are_refused(result: Any) -> None:
    with pytest.raises(ValueError, match="tokens"):
        hypotheses_of(result, alone=True)
