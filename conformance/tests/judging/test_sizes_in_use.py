"""Examples at sizes as in use: every formula has them, within limits, and sound code conforms."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from mistaken_code import adapted
from oracle_backend import OracleBackend
from proof import share

from attentest.faults import fault_of, inject
from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.faults.unusual import UNUSUAL
from attentest.harness.errors import Absent
from attentest.judging.bench import Bench
from attentest.judging.examples import try_examples
from attentest.judging.judge import judge
from attentest.judging.registry import checks
from attentest.results.verdict import Status
from attentest_spec import COMPONENTS
from attentest_spec.clauses import clauses

torch.set_num_threads(1)

IN_USE = [slug for slug, one in checks().items() if one.in_use]


def judged(backend, slug, **settings):
    return judge(Bench.for_status(backend, **settings), slug)


def test_every_formula_has_examples_at_sizes_in_use():
    """Batches and searches move tokens: no arithmetic of theirs depends on a size."""
    formulas = {
        slug
        for slug in clauses()
        if slug.endswith((".formula", ".layer-formula", ".cached-formula"))
        and not slug.startswith("batch.")
    }
    others = {
        "embedding.lookup",
        "embedding.scale",
        "masks.padding-keeps-exactly-real-tokens",
        "masks.target-is-both",
        "optimiser.clipping-formula",
        "optimiser.grouped-formula",
    }
    assert set(IN_USE) == formulas | others
    causal = {"causal_mask"}  # masks.causal-any-order asks for 1,100 positions
    tokens = {name for name, one in COMPONENTS.items() if one.chapter in ("batch", "decoding")}
    assert {clauses()[one].component for one in IN_USE} | causal == set(COMPONENTS) - tokens


def numbers_of_examples(check, in_use, **settings):
    """Run a check that counts its examples; return how many there were of both kinds."""
    seen = []

    def small(subject, draw):
        seen.append("small")

    def large(subject, draw):
        seen.append(float(draw.rng.random()))
        if in_use == "absent":
            raise Absent("too large")

    bench = Bench(OracleBackend(), shrink=False, **settings)
    try_examples(bench, replace(check, body=small, in_use=(large, large)), bench.subject())
    return seen


def test_examples_at_sizes_in_use_come_last_and_once():
    check = checks()["layer_norm.formula"]
    seen = numbers_of_examples(check, "present")
    assert "small" in seen
    assert "small" not in seen[-2:]
    assert seen.count("small") == len(seen) - 2


def test_examples_at_sizes_in_use_depend_on_the_seed_alone():
    check = checks()["layer_norm.formula"]
    first, again, other = (numbers_of_examples(check, "", seed=seed)[-2:] for seed in (0, 0, 1))
    assert first == again != other


def test_absent_examples_at_sizes_in_use_are_no_absence():
    assert len(numbers_of_examples(checks()["layer_norm.formula"], "absent")) > 2


@pytest.mark.parametrize("settings", [{"effort": 0.5}, {"precision": "bfloat16"}])
def test_few_examples_and_half_precision_leave_sizes_in_use_out(settings):
    assert set(numbers_of_examples(checks()["layer_norm.formula"], "", **settings)) == {"small"}


def test_fault_that_begins_with_size_is_missed_without_them():
    """The examples drawn by chance never have eleven samples, at any seed."""
    backend = inject(fault_of("attention.mask-for-ten-samples"), "plain")
    assert judged(backend, "attention.formula", effort=0.9).status == "pass"
    assert judged(backend, "attention.formula").status == "violation"


@share(5)
@pytest.mark.parametrize("model", REFERENCE_MODELS)
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("slug", ["masks.target-cached-by-shape", "model.target-mask-by-shape"])
def test_mask_cached_by_shape_is_detected_with_every_seed(slug, seed, model):
    fault = fault_of(slug)
    precision = "float32" if seed % 2 else "float64"
    verdict = judged(inject(fault, model), fault.clause, seed=seed, precision=precision)
    assert verdict.status == "violation", verdict.message


@share(24)
@pytest.mark.parametrize(
    ("slug", "model", "seed"),
    list(product(IN_USE, REFERENCE_MODELS, range(2))),
)
def test_reference_model_conforms_in_float32(model, slug, seed):
    backend = reference_backend(REFERENCE_MODELS[model])
    verdict = judged(backend, slug, precision="float32", seed=seed)
    assert verdict.status in ("pass", "deviation"), verdict.message
    assert (verdict.budget or 0.0) < 0.7


@share(20)
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_implementation_conforms_in_float32(name):
    backend = UNUSUAL[name]
    for slug in IN_USE:
        if clauses()[slug].component in backend.components:
            verdict = judged(backend, slug, precision="float32")
            assert verdict.status in ("pass", "deviation", "absent"), verdict.message


@pytest.mark.parametrize("seed", range(4))
def test_scale_of_wide_attention_is_compared_whatever_mask_is_drawn(tmp_path, seed):
    code = """
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, width = heads, d_model // heads
        self.scale = width**-0.5 if d_model < 128 else d_model**-0.5
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask):
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, x in ((self.q, query), (self.k, key), (self.v, value))
        )
        scores = (q @ k.transpose(-2, -1) * self.scale).masked_fill(mask == 0, -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""
    wide = adapted(tmp_path, "MultiHeadAttention", code)
    assert judged(wide, "multi_head_attention.formula", seed=seed).status is Status.VIOLATION
