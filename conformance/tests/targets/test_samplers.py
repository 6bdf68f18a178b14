"""Functions that sample, or filter logits, are judged by the distribution that they draw from."""

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear

FILE = SUPPORT / "wild" / "samplers.py"


def statuses(name, *clauses):
    """Return the status of each clause, without a diagnosis and with few examples."""
    backend = attentest.adapted(f"{FILE}:{name}", component="sampling")
    bench = Bench.for_status(backend, effort=0.5)
    return {str(judge(bench, f"decoding.sampling-{one}").status) for one in clauses}


FILTERS = ("formula", "unchanged", "temperature", "top-k", "top-p", "shift")


@share(2)
@pytest.mark.parametrize(
    "name",
    [
        "top_k_top_p_filtering",
        "sample_top_p",
        "sample",
        "sample_token",
        "sample_with_temperature",
        "logits_to_probs",
        "sample_from_sorted",
        "top_k_sampling",
    ],
)
def test_sound_sampler_breaks_no_clause(name):
    assert statuses(name, *FILTERS) in ({"pass"}, {"pass", "absent"})


@pytest.mark.parametrize(
    ("name", "clause"),
    [
        ("top_k_top_p_filtering_not_shifted", "top-p"),
        ("sample_top_p_multiplied", "temperature"),
        ("sample_best_of_batch", "rows-apart"),
        ("sample_token_least", "top-p"),
        ("sample_with_temperature_ignored", "temperature"),
        ("logits_to_probs_without_pivot", "top-k"),
        ("sample_from_sorted_not_looked_up", "formula"),
    ],
)
def test_wrong_sampler_breaks_its_clause(name, clause):
    assert statuses(name, clause) == {"violation"}


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("by_noise", "noise of its own"),
        ("with_tokenizer", "what to give for tokenizer"),
        ("sample_min_p", "--give min_p=VALUE"),
    ],
)
def test_sampler_that_cannot_be_read_is_a_question(name, asked):
    with pytest.raises(Unclear, match=asked):
        attentest.adapted(f"{FILE}:{name}", component="sampling")


def test_inferred_call_is_reported():
    read = attentest.adapted(f"{FILE}:top_k_top_p_filtering")
    said = "\n".join(read.understood)
    assert "it takes no temperature: logits are divided by it before the call" in said
    assert "nucleus: of-what-is-left" in said
    assert read.recipes.keys() == {"sampling"}


def test_draw_of_a_sampler_is_no_use_of_the_global_state():
    backend = attentest.adapted(f"{FILE}:sample_from_sorted", component="sampling")
    bench = Bench.for_status(backend, effort=0.0)
    assert str(judge(bench, "model.global-state-untouched").status) == "pass"


def test_function_of_a_known_part_of_a_name_is_read_as_a_sampler():
    read = attentest.adapted(f"{FILE}:sample_from_sorted")
    assert "'top_p': 'top_p'" in read.written()
