"""Ordinary code that computes in the precision of its input breaks no MUST in half precision."""

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from attentest.faults.reference_models import REFERENCE_MODELS, reference_backend
from attentest.faults.unusual import UNUSUAL
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest_spec import Limits, Sizes
from attentest_spec.clauses import clauses
from attentest_spec.torch import Recipe, TorchBackend

torch.set_num_threads(1)

HALVES = ("float16", "bfloat16")
LARGE = "layer_norm.half-precision-large"
ZEROS = "layer_norm.constant-row-half-precision"


class Norm(nn.Module):
    """The formula, written down as it is read."""

    epsilon = 1e-5

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(sizes.d_model))
        self.bias = nn.Parameter(torch.zeros(sizes.d_model))

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        variance = (centred**2).mean(-1, keepdim=True)
        return self.gain * centred / torch.sqrt(variance + self.epsilon) + self.bias


class TinyEpsilon(Norm):
    """The epsilon of several libraries, which is 0 in float16."""

    epsilon = 1e-12


class Deviation(Norm):
    """The deviation from n - 1, and epsilon outside of the root; that of zeros has a slope of 0."""

    epsilon = 1e-6

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return self.gain * centred / (x.std(-1, keepdim=True) + self.epsilon) + self.bias


class NormInFloat32(Norm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).to(x.dtype)


def attend(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Compute attention by exponentials and their sum, in the precision of the input."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    powers = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


class Heads(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = sizes.d_model, sizes.heads
        if width % max(self.heads, 1):
            raise ValueError(f"{width} columns cannot be divided among {self.heads} heads")
        self.query, self.key, self.value, self.output = (
            nn.Linear(width, width, bias=False) for _ in range(4)
        )

    def forward(self, *inputs: Tensor | None) -> Tensor:
        maps = (self.query, self.key, self.value)
        split = (
            one(x).unflatten(-1, (self.heads, -1)) for one, x in zip(maps, inputs, strict=False)
        )
        context, _ = attend(*(one.transpose(1, 2) for one in split), inputs[3])
        return self.output(context.transpose(1, 2).flatten(2))


class Sublayer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.norm = Norm(sizes)

    def forward(self, x: Tensor, sublayer: Tensor) -> Tensor:
        return self.norm(x + x @ sublayer)


NORM = {"gain": "gain", "bias": "bias"}
LINEAR = {f"{one}.weight": f"{one}.weight" for one in ("query", "key", "value", "output")}
WRAPPED = {f"norm.{one}": f"norm.{one}" for one in NORM}
DEVIATION = {"norm_variance": "unbiased", "norm_epsilon_place": "added-to-deviation"}


def backend(component: str, build: object, table: Mapping[str, str], **choices) -> TorchBackend:
    """Return a backend that provides one component."""
    recipes = {component: Recipe(build=build, parameters=table)}
    limits = Limits(dropout=False)
    return TorchBackend(
        name="naive", title="naive", recipes=recipes, choices=choices, limits=limits
    )


NORMS = {
    "by mean squares": backend("layer_norm", Norm, NORM),
    "with a tiny epsilon": backend("layer_norm", TinyEpsilon, NORM, norm_epsilon=1e-12),
    "by the deviation": backend("layer_norm", Deviation, NORM, norm_epsilon=1e-6, **DEVIATION),
}
OTHERS = {
    "attention": backend("attention", lambda sizes: attend, {}),
    "heads": backend("multi_head_attention", Heads, LINEAR),
    "sublayer": backend("residual", Sublayer, WRAPPED),
}


def failing(backend: TorchBackend, precision: str, pattern: str = "", level: str = "MUST"):
    """Return the messages of the clauses of a level that do not hold, by slug."""
    bench = Bench.for_status(backend, precision=precision, effort=0.3)
    about = [
        one.slug
        for one in clauses().values()
        if one.component in backend.components and pattern in one.slug and one.level == level
    ]
    assert about
    verdicts = [judge(bench, slug) for slug in about]
    return {one.clause: one.message for one in verdicts if one.status.broken}


@pytest.mark.parametrize("name", [*NORMS, "attention", "heads"])
def test_clauses_on_half_precision_hold_for_naive_code(name: str) -> None:
    assert failing({**NORMS, **OTHERS}[name], "float64", "half-precision") == {}


@pytest.mark.parametrize("precision", HALVES)
@pytest.mark.parametrize("name", [*NORMS, "sublayer"])
def test_naive_code_is_judged_in_half_precision_without_a_violation(
    name: str, precision: str
) -> None:
    found = failing({**NORMS, **OTHERS}[name], precision)
    # The root of a deviation of 0 has no slope: a fact about this norm in every precision.
    expected = {"layer_norm.constant-row-gradient"} if name == "by the deviation" else set()
    assert set(found) <= expected, found


def test_a_norm_that_needs_float32_inside_is_warned() -> None:
    by_squares = failing(NORMS["by mean squares"], "float64", "half-precision", "SHOULD")
    assert set(by_squares) == {LARGE}
    tiny = failing(NORMS["with a tiny epsilon"], "float64", "half-precision", "SHOULD")
    assert set(tiny) == {LARGE, ZEROS}
    limits = Limits(dropout=False, precisions=("float32", *HALVES))
    wide = replace(backend("layer_norm", NormInFloat32, NORM), limits=limits)
    assert failing(wide, "float64", "half-precision", "SHOULD") == {}


@pytest.mark.parametrize("placement", ["post", "pre"])
@pytest.mark.parametrize("model", REFERENCE_MODELS)
def test_dropped_columns_are_judged_where_they_can_be_distinguished(
    model: str, placement: str
) -> None:
    backend = reference_backend(REFERENCE_MODELS[model], {"norm_placement": placement})
    coarse, fine = (
        judge(Bench(backend, precision=precision), "residual.branch-is-dropped")
        for precision in ("bfloat16", "float32")
    )
    assert fine.status == "pass", fine.message
    assert coarse.status in ("pass", "absent"), coarse.message


NARROW = (
    *("optimiser.zero-rate", "optimiser.zero-gradients", "optimiser.steady-gradient"),
    *("optimiser.first-update", "optimiser.own-means", "optimiser.inputs-untouched"),
    *("optimiser.absent-gradients", "optimiser.beta2", "optimiser.scale-invariance"),
    *("optimiser.earlier-updates", "optimiser.clipping-formula", "decoding.sampling-unchanged"),
    *("initialisation.matrices", "initialisation.packing", "initialisation.residual-scale"),
)
"""Clauses whose numbers leave the range of a half precision, or are below its rounding."""


@pytest.mark.parametrize("precision", HALVES)
def test_training_in_half_precision_is_judged_without_a_violation(precision: str) -> None:
    backend = reference_backend(REFERENCE_MODELS["plain"], {"initialisation": "xavier-uniform"})
    bench = Bench.for_status(backend, precision=precision)
    verdicts = [judge(bench, slug) for slug in NARROW]
    assert {one.clause: one.message for one in verdicts if one.status.broken} == {}
    assert any(one.status == "pass" for one in verdicts)


def test_a_gate_in_float16_is_judged_in_its_range() -> None:
    backend = reference_backend(REFERENCE_MODELS["plain"], {"feed_forward_gate": "gated"})
    verdict = judge(Bench(backend, precision="float16"), "feed_forward.formula")
    assert verdict.status == "pass", verdict.message


@pytest.mark.parametrize("slug", ["chosen-alone", "own-parameters"])
def test_moved_experts_stay_within_half_precision(slug):
    gated = {"feed_forward_gate": "gated", "activation": "silu", "feed_forward_bias": "none"}
    backend = reference_backend(REFERENCE_MODELS["plain"], choices=gated)
    verdict = judge(Bench.for_status(backend, precision="float16"), f"mixture_of_experts.{slug}")
    assert verdict.status == "pass", verdict.message


def test_padding_without_numbers_in_half_precision_breaks_nothing() -> None:
    (name,) = (one for one in UNUSUAL if "not numbers in half" in UNUSUAL[one].title)
    for seed in range(4):
        verdict = judge(Bench.for_status(UNUSUAL[name], seed=seed), "language_model.half-precision")
        assert verdict.status == "pass", verdict.message
