"""Profiles as targets, in lists and explanations, and as what deviations are counted from."""

from dataclasses import replace

import pytest
import torch
from click.testing import CliRunner

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.interfaces.cli.main import main
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets import resolve
from attentest_spec import Choices, Sizes
from attentest_spec.profiles import PROFILES

torch.set_num_threads(1)

SIZES = Sizes(d_model=16, heads=2, kv_heads=1, layers=1, target_vocabulary=5)


@pytest.mark.parametrize("name", PROFILES)
def test_profile_is_a_target(name: str) -> None:
    backend = resolve.load(name)
    assert Choices.of(backend.choices) == Choices.of(PROFILES[name].choices)
    assert getattr(backend, "profile", "") == name
    backend.build(PROFILES[name].whole, SIZES.but(source_vocabulary=5))


def test_target_changes_a_choice_of_its_profile() -> None:
    backend = resolve.load("llama tying=all-three")
    assert backend.choices["tying"] == "all-three"
    assert backend.choices["norm_kind"] == "rms"


def test_list_and_explain_show_profiles() -> None:
    listed = CliRunner().invoke(main, ["list", "profiles"]).output
    assert [line.split()[0] for line in listed.splitlines()] == list(PROFILES)
    explained = CliRunner().invoke(main, ["explain", "llama"]).output
    assert "norm_kind            rms (the paper: layer)" in explained
    assert "arXiv 2307.09288" in explained


@pytest.mark.proof
def test_two_profiles_differ_in_the_choices_that_explain_their_numbers() -> None:
    text = CliRunner().invoke(main, ["compare", "llama", "gemma"]).output
    assert "Explained by 5 choices:" in text
    assert "rms_weight weight -> one-plus-weight" in text


def test_deviation_is_counted_from_the_profile_of_the_backend() -> None:
    choices = {**PROFILES["llama"].choices, "block_norms": "sandwich"}
    plain = reference_backend(REFERENCE_MODELS["plain"], choices)

    def verdict(profile: str, clause: str) -> tuple[str, str]:
        backend = replace(plain, profile=profile)
        bench = Bench.for_status(backend, effort=0.3, loader="backend = ..")
        one = judge(bench, clause)
        return str(one.status.value), one.message

    assert verdict("llama", "language_model.norm-kind")[0] == "pass"
    assert verdict("paper", "language_model.norm-kind")[0] == "deviation"
    status, message = verdict("llama", "language_model.block-norms")
    assert status == "deviation"
    assert message == "declared and measured: sandwich; the profile llama: pre"
