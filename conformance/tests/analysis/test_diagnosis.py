"""Diagnosis: the mistake is named, alone or with another one, for numbers and other outcomes."""

import zlib
from functools import cache
from itertools import combinations

import numpy as np
import pytest
import torch
from proof import share

from attentest.analysis.diagnosis import _same_sizes
from attentest.analysis.diagnosis.difference import difference, size
from attentest.analysis.diagnosis.variants import variant_named
from attentest.faults import Fault, fault_of, faults, with_faults
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.harness.oracle import Reference
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import LikelyCause, Verdict
from attentest.results.wording import likely_causes
from attentest_spec import CHOICES, Choices, Gradient, Unsupported
from attentest_spec.clauses import clauses
from attentest_spec.components import inside

torch.set_num_threads(1)


def planted(*faults: Fault, specimen: str = "fused", **choices):
    declared = {name: value for fault in faults for name, value in fault.choices.items()}
    return reference_backend(
        with_faults(REFERENCE_MODELS[specimen], *faults), {**declared, **choices}
    )


class Nowhere:
    """Locates nothing: lines are looked for by other tests, and take as long as causes."""

    def locate(self, subject, steps, **compared):
        return None


def causes_of(backend, clause, seed=0):
    torch.manual_seed(0)  # faults that draw numbers give the same ones in any order of the tests
    verdict = judge(Bench(backend, shrink=False, locator=Nowhere(), seed=seed), clause)
    assert verdict.status in ("violation", "warning", "error"), verdict
    return verdict.diagnosis


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_random_outputs_of_either_sign_are_alike(seed: int) -> None:
    fault = fault_of("encoder.upper-layers-always-train")
    bench = Bench(planted(fault, specimen="plain"), shrink=False, locator=Nowhere(), seed=seed)
    assert judge(bench, fault.clause).diagnosis


def test_options_explain_no_answer_of_nan_in_the_place_of_a_refusal() -> None:
    backend = planted(
        fault_of("loss.smoothing-unchecked"),
        loss_input="log-probabilities",
        loss_measure="divergence",
        loss_normaliser="none",
        loss_without_targets="zero",
        smoothed_mass="other-real-words",
    )
    names = [one.names for one in causes_of(backend, "loss.smoothing-refused")]
    assert names[0] == ("loss.smoothing-unchecked",)
    assert not [one for one in names if "=" in one[0]]


def some(kinds: tuple[str, ...], share: int) -> list[Fault]:
    """Return one in `share` of the faults, always the same ones, of every chapter."""
    return [
        fault
        for fault in faults().values()
        if fault.kind in kinds and zlib.crc32(fault.slug.encode()) % share == 0
    ]


def name_of(fault: Fault) -> str:
    """Return another name than the one by which `some` chooses: all of these are in one share."""
    return f"diagnosis-of-{fault.slug}"


NUMBERS = some(("value", "loud", "gradient"), 12)
REST = some(("state", "mode"), 6)


@cache
def diagnosed(slug: str):
    fault = fault_of(slug)
    model = fault.models[-1]  # injected in one style, and searched for in the other
    return causes_of(planted(fault, specimen=model), fault.clause)


# The test below diagnoses all of them once more, where it does not run with these: in `exhaustive`.
@share(40)
@pytest.mark.parametrize("fault", NUMBERS, ids=name_of)
def test_mistake_in_numbers_is_named(fault: Fault) -> None:
    found = diagnosed(fault.slug)
    assert (fault.slug,) in [one.names for one in found], found


def first_of(slug: str) -> tuple[str, ...]:
    """Return the names of the first cause, without options that give all of the results."""
    exact = [one for one in diagnosed(slug) if one.kind != "option" or one.missed]
    return exact[0].names if exact else ()


@pytest.mark.exhaustive
def test_most_mistakes_in_numbers_are_named_first() -> None:
    """In training and decoding another choice or fault often gives the same results.

    So does an option of a choice where a mistake is one that was not declared: options come first.
    """
    of_models = [one for one in NUMBERS if clauses()[one.clause].component in inside("model")]
    named_first = [fault.slug for fault in of_models if first_of(fault.slug) == (fault.slug,)]
    assert len(of_models) >= 30
    assert len(named_first) >= 0.95 * len(of_models), {f.slug for f in of_models} - {*named_first}


@pytest.mark.proof
@share(12)
@pytest.mark.parametrize("fault", REST, ids=name_of)
def test_other_mistakes_are_known_by_the_clause_that_fails(fault: Fault) -> None:
    found = causes_of(planted(fault, specimen=fault.models[-1]), fault.clause)
    # What is random gives another message each time: another fault of the mode may be nearer.
    alike = {fault_of(name).kind for one in found for name in one.names} & {"mode"} & {fault.kind}
    assert alike or (fault.slug,) in [one.names for one in found], found


FLIPS = [
    ("norm_placement", "pre", "residual.formula"),
    ("embedding_scale", "none", "embedding.scale"),
    ("positional_encoding", "halves", "positional_encoding.formula"),
    ("activation", "gelu", "feed_forward.formula"),
    ("output", "logits", "generator.formula"),
    ("norm_variance", "unbiased", "layer_norm.formula"),
]


@pytest.mark.parametrize(("choice", "option", "clause"), FLIPS)
def test_another_option_than_the_declared_one_is_named_first(choice, option, clause) -> None:
    class Liar(type(reference_backend(REFERENCE_MODELS["plain"]))):
        pass

    sound = reference_backend(REFERENCE_MODELS["plain"], {choice: option})
    backend = Liar(
        name="liar",
        title="",
        recipes=sound.recipes,
        choices={**sound.choices, choice: Choices()[choice]},
    )
    first = causes_of(backend, clause)[0]
    assert first.kind == "option"
    assert first.names == (f"{choice}={option}",)
    assert CHOICES[choice].why
    assert option in first.text


def pairs_of(component: str, clause: str, count: int):
    """Return pairs of faults of unlike seams, drawn once and for all."""
    own = [
        fault
        for fault in faults().values()
        if fault.kind == "value" and component in fault.changes and not fault.choices
    ]
    every = [pair for pair in combinations(own, 2) if pair[0].seam != pair[1].seam]
    chosen = np.random.default_rng(3).choice(len(every), size=count, replace=False)
    return [(clause, *every[number]) for number in chosen]


DRAWN = [
    *pairs_of("attention", "attention.formula", 6),
    *pairs_of("layer_norm", "layer_norm.formula", 4),
    *pairs_of("feed_forward", "feed_forward.formula", 4),
    *pairs_of("residual", "residual.formula", 4),
    *pairs_of("generator", "generator.formula", 4),
]


@pytest.mark.exhaustive
def test_two_mistakes_at_once_are_named_where_none_fits_alone() -> None:
    """Of drawn pairs, both are named, or a variant that answers the same in every example."""
    judged_pairs = told = 0
    for clause, first, second in DRAWN:
        backend = planted(first, second)
        verdict = judge(Bench(backend, shrink=False, locator=Nowhere()), clause)
        if verdict.status == "pass":  # the clause is not the one that catches these two
            continue
        judged_pairs += 1
        told += any(set(one.names) & {first.slug, second.slug} for one in verdict.diagnosis)
    assert judged_pairs >= 15
    assert told >= 0.9 * judged_pairs, (told, judged_pairs)


@pytest.mark.proof
def test_pair_is_named_as_a_pair() -> None:
    names = ("attention.scale-missing", "attention.mask-added-as-ones")
    backend = planted(*(fault_of(name) for name in names))
    # The first failing example shows both: a mask hides something, and no score is tiny.
    first = causes_of(backend, "attention.formula", seed=1)[0]
    assert first.kind == "combination"
    assert set(first.names) == set(names)
    assert first.difference < 1e-12
    assert " together with " in first.text


def test_faults_planted_together_are_both_at_work() -> None:
    alone = [fault_of("attention.scale-missing"), fault_of("attention.mask-added-as-ones")]
    for specimen in REFERENCE_MODELS:
        backend = planted(*alone, specimen=specimen)
        statuses = {
            slug: judge(Bench.for_status(backend), slug).status
            for slug in ("attention.formula", "attention.masked-keys-ignored")
        }
        assert set(statuses.values()) == {"violation"}


def test_answer_of_no_variant_has_no_cause() -> None:
    class Noise(Reference):
        def build(self, component, sizes, *, precision="float64", device="cpu"):
            part = super().build(component, sizes, precision=precision, device=device)

            class Odd:
                capabilities = ()

                def __call__(self, *inputs, method=""):
                    return part(*inputs, method=method) + 0.01 * np.sin(inputs[0] * 7.0)

                def load(self, parameters):
                    part.load(parameters)

            return Odd()

    found = causes_of(Noise(Choices()), "layer_norm.formula")
    assert found == ()


def test_mistake_found_inside_is_looked_for_first_outside() -> None:
    fault = fault_of("attention.scale-missing")
    bench = Bench(planted(fault), shrink=False, locator=Nowhere())
    inner, outer = (judge(bench, slug) for slug in ("attention.formula", "encoder.layer-formula"))
    assert inner.diagnosis[0].names == outer.diagnosis[0].names == (fault.slug,)
    assert len(outer.diagnosis) == 1


def test_likely_causes_survive_the_stream() -> None:
    verdict = judge(Bench(planted(fault_of("attention.scale-missing"))), "attention.formula")
    assert type(verdict).from_dict(verdict.as_dict()) == verdict
    assert isinstance(verdict.diagnosis[0], LikelyCause)


class TestApart:
    def test_arrays_by_their_numbers(self) -> None:
        one = np.array([1.0, np.nan, np.inf])
        assert difference(one, one) == 0.0
        assert difference(one, np.array([1.5, np.nan, np.inf])) == 0.5
        assert difference(one, np.array([1.0, 0.0, np.inf])) == np.inf

    @pytest.mark.parametrize("other", [np.ones((1, 2)), np.ones(2, np.float32), np.array([1, 1])])
    def test_arrays_of_different_shape_or_type_differ_infinitely(self, other) -> None:
        assert difference(np.ones(2), other) == np.inf

    def test_exceptions_by_their_type(self) -> None:
        assert difference(ValueError("a"), ValueError("b")) == 0.0
        assert difference(ValueError("a"), TypeError("a")) == np.inf
        assert difference(ValueError("a"), np.ones(2)) == np.inf

    def test_errors_of_operations_by_their_words_too(self) -> None:
        shapes = "The size of tensor a ({}) must match the size of tensor b ({}) at dimension 3"
        one, other = (RuntimeError(shapes.format(*two)) for two in ((2, 3), (5, 1)))
        assert difference(one, other) == 0.0
        strided = "view size is not compatible with input tensor's size and stride"
        assert difference(one, RuntimeError(strided)) == np.inf

    def test_missing_outcome_makes_no_difference(self) -> None:
        assert difference((np.ones(2), None), (np.ones(2), np.ones(3))) == 0.0
        assert difference(np.ones(2), Unsupported("no")) == 0.0

    def test_gradients_by_all_their_arrays(self) -> None:
        one = Gradient(np.ones(2), (np.ones(2), None), {"weight": np.ones(3)})
        assert difference(one, one) == 0.0
        for other in (
            Gradient(np.zeros(2), (np.ones(2), None), {"weight": np.ones(3)}),
            Gradient(np.ones(2), (np.zeros(2), None), {"weight": np.ones(3)}),
            Gradient(np.ones(2), (np.ones(2), None), {"weight": np.zeros(3)}),
        ):
            assert difference(one, other) == 1.0

    def test_inventories_by_what_is_there(self) -> None:
        one = {"parameters": {"a": {"shape": (2,)}, "b": {"shape": (3,)}}}
        renamed = {"parameters": {"x": {"shape": (3,)}, "y": {"shape": (2,)}}}
        fewer = {"parameters": {"x": {"shape": (3,)}}}
        assert difference(one, renamed) == 0.0
        assert difference(one, fewer) == np.inf
        assert difference({"trained": True}, {"trained": False}) == np.inf

    def test_words_and_numbers(self) -> None:
        assert difference("meta", "cpu") == np.inf
        assert difference(3, 5) == 2.0
        assert difference(3, "3") == np.inf

    def test_size_is_the_largest_finite_number(self) -> None:
        assert size((np.array([1.0, -7.0, np.inf]), {"a": np.array([2.0])})) == 7.0


def test_names_lead_back_to_the_variant() -> None:
    variant = variant_named(["norm_placement=pre", "attention.scale-missing"], Choices())
    assert variant.names == ("norm_placement=pre", "attention.scale-missing")
    assert variant.kind == "combination"
    assert variant.combined(variant) is None


def test_clauses_named_here_exist() -> None:
    assert {clause for *_, clause in FLIPS} <= set(clauses())


def test_most_common_cause_is_reported_for_the_backend() -> None:
    scale = LikelyCause("fault", ("attention.scale-missing",), "the scale is missing", 0.0)
    other = LikelyCause("option", ("a=b",), "the option b", 0.0)
    verdicts = [
        Verdict("mine", "one", "violation", diagnosis=(scale, other)),
        Verdict("mine", "two", "violation", diagnosis=(other,)),
        Verdict("mine", "three", "violation", diagnosis=(scale,)),
        Verdict("mine", "four", "violation"),
        Verdict("mine", "five", "pass"),
    ]
    first, second = likely_causes(verdicts)
    assert first.startswith("the scale is missing (2 of 3 failing clauses")
    assert second.startswith("the option b (1 of 3")
    assert likely_causes(verdicts[-2:]) == []


def test_whole_number_that_was_found_is_no_size() -> None:
    assert _same_sizes("differs: found 0, expected -1.6", "differs: found -3.1, expected 2")
    assert not _same_sizes("a width of heads 3 was refused", "a width of heads -1 was refused")
