"""Functions that make masks: what they are given, and what is asked where none is right."""

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.plan import select
from attentest.targets.adapt import Unclear

FILE = SUPPORT / "wild" / "mask_functions.py"


def statuses(name: str, component: str = "", **settled: object) -> dict[str, str]:
    """Return the status of every clause of a function, without diagnosis."""
    read = attentest.adapted(f"{FILE}:{name}", component, **settled)
    bench = Bench.for_status(read)
    return {one: judge(bench, one).status.value for one in select(read.components)}


@share(2)
@pytest.mark.parametrize(
    ("name", "judged"),
    [
        ("get_subsequent_mask", 6),
        ("causal_mask", 6),
        ("subsequent_mask", 6),
        ("get_attn_subsequence_mask", 6),
        ("make_pad_mask", 4),
        ("padding_mask", 5),
        ("get_attn_pad_mask", 5),
        ("make_tgt_mask", 7),
        ("get_tgt_mask", 7),
        ("make_causal_mask", 6),
    ],
)
def test_functions_of_other_arguments_conform(name, judged):
    found = list(statuses(name).values())
    assert set(found) <= {"pass", "absent"}
    assert found.count("pass") >= judged


def test_constant_pad_id_is_an_assumption_that_strict_asks_about():
    read = attentest.adapted(f"{FILE}:padding_mask")
    assert read.limits.pad == 2
    assert read.assumed[0].startswith("assumed that its pad id is always 2")
    with pytest.raises(Unclear, match="--strict assumes nothing"):
        attentest.adapted(f"{FILE}:padding_mask", strict=True)


@pytest.mark.parametrize(
    ("name", "component", "meaning"),
    [
        ("wrong_subsequent_mask", "causal_mask", "keep"),
        ("wrong_pad_mask", "padding_mask", "blocks"),
    ],
)
def test_wrong_mask_is_asked_for_its_meaning_and_the_advice_judges_it(name, component, meaning):
    with pytest.raises(Unclear) as failure:
        attentest.adapted(f"{FILE}:{name}", component)
    assert "--set mask=keep or --set mask=blocks" in str(failure.value)
    assert "mask=additive" not in str(failure.value)
    found = list(statuses(name, component, mask=meaning).values())
    assert "violation" in found
    assert "error" not in found
    assert "pass" in found


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("wrong_padding_mask", "it does not hide one id alone"),
        ("mask_of_heads", "its one other argument is the length of the whole"),
    ],
)
def test_function_whose_reading_is_open_is_asked_about_without_a_meaning(name, reason):
    with pytest.raises(Unclear) as failure:
        attentest.adapted(f"{FILE}:{name}", "padding_mask")
    assert reason in str(failure.value)
    assert "--" not in str(failure.value)


def test_written_adapter_of_lengths_judges_as_the_inferred_one(tmp_path):
    file = tmp_path / "written.py"
    file.write_text(attentest.adapted(f"{FILE}:make_pad_mask").written())
    slug = "masks.padding-keeps-exactly-real-tokens"
    report = attentest.check(f"{file}:backend", clauses=[slug])
    assert report[slug].status == "pass", str(report)


@pytest.mark.parametrize(
    ("name", "components"),
    [
        ("create_masks", ("padding_mask", "target_mask")),
        ("create_mask", ("padding_mask", "causal_mask")),
        ("make_all_masks", ("padding_mask", "causal_mask")),
    ],
)
def test_function_that_makes_the_masks_of_both_sides_is_judged_by_each(name, components):
    read = attentest.adapted(f"{FILE}:{name}")
    assert set(read.components) == set(components)
    assert set(statuses(name).values()) <= {"pass", "absent"}


def test_one_of_the_masks_is_judged_where_its_component_is_named():
    read = attentest.adapted(f"{FILE}:create_masks", "target_mask")
    assert tuple(read.components) == ("target_mask",)


@pytest.mark.parametrize("name", ["make_masks", "get_masks"])
def test_wrong_masks_of_both_sides_are_a_question(name):
    with pytest.raises(Unclear, match="not all that it returns was recognised") as failure:
        attentest.adapted(f"{FILE}:{name}")
    assert "Write a function that returns one of them" in str(failure.value)


@pytest.mark.parametrize("name", ["create_mask", "make_all_masks"])
def test_written_adapter_of_both_sides_judges_as_the_inferred_one(tmp_path, name):
    file = tmp_path / "written.py"
    file.write_text(attentest.adapted(f"{FILE}:{name}").written())
    slugs = ["masks.padding-keeps-exactly-real-tokens", "masks.causal-blocks-future"]
    report = attentest.check(f"{file}:backend", clauses=slugs)
    assert report.conforms, str(report)


OF_LENGTHS = """
import torch


def get_mask_from_lengths(lengths, longest=None):
    \"\"\"Return a mask (B, T), WORDS.\"\"\"
    longest = longest or int(lengths.max())
    return torch.arange(longest, device=lengths.device)[None] >= lengths[:, None]
"""


@pytest.mark.parametrize(
    "words",
    ["padded elements are True. Use x.masked_fill_(mask, 0) for the masking", "for padding"],
)
def test_mask_of_which_true_hides_conforms(tmp_path, words):
    (tmp_path / "own.py").write_text(OF_LENGTHS.replace("WORDS", words))
    bench = Bench.for_status(attentest.adapted(f"{tmp_path / 'own.py'}:get_mask_from_lengths"))
    found = {judge(bench, one).status.value for one in select(bench.backend.components)}
    assert found <= {"pass", "absent"}


def test_mask_that_is_the_contrary_of_its_documentation_is_a_question(tmp_path):
    (tmp_path / "own.py").write_text(OF_LENGTHS.replace("WORDS", "real tokens are True"))
    target = f"{tmp_path / 'own.py'}:get_mask_from_lengths"
    with pytest.raises(Unclear, match="By its documentation, True or 1 may be attended"):
        attentest.adapted(target)
    bench = Bench.for_status(attentest.adapted(target, mask="keep"))
    assert judge(bench, "masks.padding-keeps-exactly-real-tokens").status == "violation"
