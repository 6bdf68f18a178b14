"""The parts of a training: those of the spec, to rounding, and those of a backend."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from learning import PLAIN, same_state, small, trained
from torch import Tensor

from attentest.faults.reference_models import Plain, reference_backend
from attentest.studies.learning import learn
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.gradients import norms, part_of
from attentest.studies.learning.parts import Parts
from attentest.studies.learning.training import TRAINING, Trainer
from attentest_spec import Limits, Sizes
from attentest_spec.generator import normalised
from attentest_spec.loss import loss, loss_gradient
from attentest_spec.model import model
from attentest_spec.optimiser import gradient_clipping, optimiser
from attentest_spec.schedule import learning_rate
from attentest_spec.setting import Setting
from attentest_spec.torch import Recipe, TorchBackend

BARE = reference_backend(Plain, {"tying": "none", "output": "logits"}, "bare")
ROUNDING = 1e-12

SETTINGS = {
    "usual": {},
    "all": {"smoothing": 0.1, "weight_decay": 0.5, "clip": 0.5, "beta2": 0.9, "epsilon": 1e-6},
    "coupled": {"weight_decay": 0.1, "decay": "coupled", "schedule": "linear", "warmup": 2},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_one_step_is_that_of_the_oracles(settings):
    regime = small(steps=3, every=1, **settings)
    trainer = Trainer.of(BARE, regime, 0)
    start, given = trainer.state.parameters, regime.setting("logits")
    source, target = regime.of_task.batch([0, TRAINING, 1], regime.batch, regime.length)
    begun, wanted = target[:, :-1], target[:, 1:]
    output = model(Setting(regime.sizes, trainer.layout.choices, start), source, begun)
    pulled = trainer.part.vjp((source, begun), loss_gradient(given, output, wanted)).parameters

    def flat(arrays):
        return np.concatenate([arrays[name].ravel() for name in start])

    gradient = flat(pulled)
    if regime.clip:
        assert np.linalg.norm(gradient) > regime.clip
        counts = np.array([one.size for one in start.values()])
        gradient = gradient_clipping(given, gradient, counts, np.array(regime.clip))
    rates = np.array([learning_rate(given, 1)])
    (after,) = optimiser(given, flat(start), gradient[None], rates)
    trainer._step()
    assert trainer.losses == [pytest.approx(float(loss(given, output, wanted)), rel=ROUNDING)]
    # Gradients that are noise are as large as the rate after a division by themselves.
    large = abs(gradient) > 1e-9
    assert large.mean() > 0.5
    found = flat(trainer.state.parameters)
    np.testing.assert_allclose(found[large], after[large], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_probability_of_zero_costs_much_and_not_infinity(dtype):
    parts = Parts.of(PLAIN, small(), "probabilities")
    output, wanted = np.array([[[1.0, 0.0]]], dtype=dtype), np.array([[1]])
    assert parts.loss(output, wanted) == pytest.approx(-np.log(np.float64(np.finfo(dtype).tiny)))
    assert np.isfinite(parts.pull(output, wanted).astype(dtype)).all()


def test_a_constant_rate_has_no_warm_up():
    parts = Parts.of(PLAIN, small(rate=0.003), "logits")
    assert {parts.rate(step) for step in (1, 4000, 100_000)} == {0.003}


def test_norms_are_those_of_a_part_in_a_layer():
    names = {
        "encoder.layers.10.self_attention.query.weight": "encoder.layers.10.self_attention",
        "encoder.layers.10.self_attention_norm.gain": "encoder.layers.10.self_attention_norm",
        "decoder.norm.bias": "decoder.norm",
        "source_embedding.weight": "source_embedding",
    }
    assert {name: part_of(name) for name in names} == names
    found = norms({"a.weight": np.array([[3.0]]), "a.bias": np.array([4.0]), "b.gain": np.ones(4)})
    assert found == {"a": 5.0, "b": 2.0}


def test_gradients_of_a_point_are_means_over_its_steps():
    each, both = (trained(PLAIN, small(steps=2, every=every)).points for every in (1, 2))
    assert both[0].gradients == {}
    one, other = (point.gradients for point in each[1:])
    assert one.keys() == {part_of(name) for name in trained(PLAIN, small()).parameters}
    for part, norm in both[1].gradients.items():
        assert norm == pytest.approx((one[part] + other[part]) / 2)
        assert norm > 0


# A backend with parts of its own

PULLED: list[float] = []


def descent(
    sizes: Sizes, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    for gradient, rate in zip(gradients, rates, strict=True):
        PULLED.append(float(rate))
        values = values - rate.to(values.dtype) * gradient
        yield values


def summed(sizes: Sizes, output: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy as a sum, without label smoothing."""
    return torch.nn.functional.cross_entropy(
        output.flatten(0, 1), target.flatten(), ignore_index=sizes.target_pad, reduction="sum"
    )


def with_parts(choices=(), limits=None, recipes=None, **own) -> TorchBackend:
    parts = {
        "loss": Recipe(build=lambda sizes: sizes, call=summed),
        "learning_rate": Recipe(build=lambda sizes: sizes, call=lambda sizes, step: 1e-3 * step),
        "optimiser": Recipe(build=lambda sizes: sizes, call=descent),
        **own,
    }
    return replace(
        BARE,
        name="own",
        choices={**BARE.choices, "loss_normaliser": "none", **dict(choices)},
        limits=limits or BARE.limits,
        recipes=recipes or {**BARE.recipes, **parts},
    )


def test_own_parts_train_and_are_reported():
    PULLED.clear()
    found = learn(with_parts(), steps=3, every=3, parts="own", clip=1e9, precision="float64")
    (curve,) = found.curves
    assert PULLED == [1e-3, 2e-3, 3e-3]
    assert curve.parts == {
        "batch": "its own",
        "loss": "its own (loss_normaliser is none)",
        "learning_rate": "its own",
        "gradient_clipping": "its own",
        "optimiser": "its own",
        "greedy_decoding": "the spec's, for its own stops at a token that is a word here",
    }
    spec = learn(with_parts(), steps=3, every=3, precision="float64").curves[0]
    assert spec.parts == {}
    # Losses are measured by the spec whatever trains; a sum pulls 270 times as much as a mean.
    assert curve.points[0].validation == spec.points[0].validation
    pair = (one.points[1].gradients["generator"] for one in (curve, spec))
    assert next(pair) / next(pair) > 100


UNFIT = {
    "loss takes another output": (
        {"choices": {"loss_input": "probabilities"}},
        {},
        "loss",
        "for its own takes probabilities",
    ),
    "smoothing is fixed": (
        {"limits": Limits(smoothing=0.0)},
        {"smoothing": 0.1},
        "loss",
        "for the label smoothing of its own is 0",
    ),
    "schedule is another": (
        {"choices": {"schedule": "constant"}},
        {},
        "learning_rate",
        "for its own schedule is constant",
    ),
    "factor is fixed": (
        {"limits": Limits(rate_factor=False)},
        {"factor": 2.0},
        "learning_rate",
        "for its own takes no factor",
    ),
    "weights are not decayed": (
        {},
        {"weight_decay": 0.1},
        "optimiser",
        "for its own does not decay weights so",
    ),
    "there is none": (
        {"recipes": {"model": BARE.recipes["model"]}},
        {},
        "loss",
        "for it provides none",
    ),
    "gradients are needed at once": (
        {"optimiser": Recipe(build=lambda sizes: sizes, call=lambda *given: given[1])},
        {},
        "optimiser",
        "for it takes all gradients at once",
    ),
}


@pytest.mark.parametrize(("backend", "asked", "part", "why"), UNFIT.values(), ids=UNFIT)
def test_own_part_that_cannot_do_what_is_asked_is_that_of_the_spec(backend, asked, part, why):
    parts = Parts.of(with_parts(**backend), small(parts="own", **asked), "logits")
    assert parts.origin[part] == f"the spec's, {why}"
    assert part not in parts.own


def test_an_own_batch_is_trained_on_and_the_spec_s_validates():
    def unshifted(sizes, source, target):
        return target[:, :-1], target[:, :-1], None, None, None

    def first(**own):
        regime = small(steps=1, every=1, parts="own")
        return trained(with_parts(**own), regime).points

    right = first()
    wrong = first(batch=Recipe(build=lambda sizes: sizes, call=unshifted))
    assert wrong[0] == right[0]
    assert wrong[1].training != right[1].training
    regime = small(parts="own")
    source, target = regime.of_task.batch([0, TRAINING, 1], regime.batch, regime.length)
    parts = Parts.of(with_parts(), regime, "logits")
    for own, spec in zip(
        parts.trained_on(source, target), parts.shifted(source, target), strict=True
    ):
        np.testing.assert_array_equal(own, spec)


def test_own_decoding_is_used_where_it_stops_as_the_task_does():
    calls = []

    def greedy(built, source, begin, length, end):
        calls.append(end)
        return begin  # shorter than asked for: all ended

    recipe = replace(BARE.recipes["model"], methods={"greedy": greedy})
    backend = with_parts(model=recipe)
    assert trained(backend, small(parts="own")).points[-1].sequences == 0
    assert not calls  # the end token is a word of the task copy
    free = replace(backend, choices={**backend.choices, "decoding_stop": "length"})
    assert trained(free, small(parts="own")).points[-1].sequences == 0
    assert set(calls) == {2}


def test_training_with_an_own_optimiser_starts_anew_unless_it_is_done():
    regime = small(parts="own")
    whole = trained(with_parts(), regime)
    half = State(dict(whole.parameters), step=2, points=whole.points[:2])
    same_state(trained(with_parts(), regime, state=half), whole)
    assert Trainer.of(with_parts(), regime, 0, whole).state is whole


def test_normalised_outputs_have_one_loss():
    logits = np.random.default_rng(0).normal(size=(2, 3, 5))
    wanted = np.array([[1, 2, 0], [4, 0, 0]])
    losses = [
        Parts.of(PLAIN, small(smoothing=0.1), kind).loss(normalised(kind, logits), wanted)
        for kind in ("logits", "log-probabilities", "probabilities")
    ]
    assert losses == pytest.approx([losses[0]] * 3)
