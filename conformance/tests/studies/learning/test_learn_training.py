"""Training through the contract: equal where the choices are, as torch does it, and it learns."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
import torch
from learning import FUSED, PLAIN, losses, same_state, small, trained
from proof import share

from attentest.faults.reference_models import Fused, Plain, reference_backend
from attentest.harness.errors import BackendError, Unavailable
from attentest.studies.learning import Regime, learn
from attentest.studies.learning.checkpoint import State
from attentest.studies.learning.decoding import Decoder
from attentest.studies.learning.initial import unequal, weights, whole
from attentest.studies.learning.learner import Layout
from attentest.studies.learning.task import is_held_out
from attentest.studies.learning.training import TRAINING, Trainer
from attentest_spec import Choices, Unsupported
from attentest_spec.parameters import shapes, tied
from attentest_spec.schedule import learning_rate

ROOM = 8.0


def layout(regime: Regime, choices: Choices) -> Layout:
    return Layout("model", regime.sizes, choices)


def nudged(state: State) -> State:
    """Return a start whose weights differ from those of `state` in their last digits."""
    rng = np.random.default_rng(1)
    signs = {name: rng.choice([-1, 1], one.shape) for name, one in state.parameters.items()}
    eps = np.finfo(np.float64).eps
    return State({name: one * (1 + eps * signs[name]) for name, one in state.parameters.items()})


def rounding(backend, regime) -> float:
    """Return how far the losses come apart when the start changes in its last digits."""
    start = Trainer.of(backend, regime, 0).state
    moved = losses(trained(backend, regime, state=nudged(start)))
    return float(abs(losses(trained(backend, regime)) - moved).max())


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("choices", [{}, {"norm_placement": "pre", "final_norm": "present"}])
def test_backends_of_equal_choices_have_equal_curves(choices):
    regime = small(steps=20, every=5)
    pair = [reference_backend(style, {"tying": "none", **choices}) for style in (Plain, Fused)]
    one, other = (losses(trained(backend, regime)) for backend in pair)
    assert one[-1, 1] < one[0, 1]
    assert abs(one - other).max() <= ROOM * max(rounding(pair[0], regime), np.finfo(float).eps)


def test_another_choice_gives_another_curve():
    regime = small()
    other = reference_backend(Plain, {"tying": "none", "activation": "gelu"})
    one, two = (losses(trained(backend, regime)) for backend in (PLAIN, other))
    assert abs(one - two).max() > 1e-6


@pytest.mark.proof
def test_it_is_what_torch_does_with_its_own_loss_and_optimiser():
    choices = {"tying": "none", "output": "logits"}
    backend, regime = reference_backend(Plain, choices), small(steps=12, every=12)
    ours = losses(trained(backend, regime))[-1, 0]
    part = backend.build("model", regime.sizes)
    part.load(weights(layout(regime, Choices.of(backend.choices)), 0))
    model = part.module
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    theirs = []
    for step in range(1, regime.steps + 1):
        batch = regime.of_task.batch([0, TRAINING, step], regime.batch, regime.length)
        source, target = map(torch.tensor, batch)
        scores = model(source, target[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(scores, target[:, 1:].flatten(), ignore_index=0)
        adam.zero_grad()
        loss.backward()
        adam.param_groups[0]["lr"] = float(learning_rate(regime.setting("logits"), step))
        adam.step()
        theirs.append(loss.item())
    bound = ROOM * max(rounding(backend, regime), np.finfo(float).eps)
    assert abs(ours - np.mean(theirs)) <= bound


@pytest.mark.parametrize("tying", ["all-three", "target-and-output", "none"])
def test_tied_weights_stay_equal(tying):
    backend = reference_backend(Plain, {"tying": tying})
    regime = small()
    trainer = Trainer.of(backend, regime, 0)
    trainer.train(lambda state: None, lambda step: None)
    held = trainer.part.export()
    twins = tied("model", regime.sizes, trainer.layout.choices)
    assert set(trainer.state.parameters) == set(held) - set(twins)
    for name, values in whole(trainer.state.parameters, twins).items():
        np.testing.assert_array_equal(held[name], values)


@pytest.mark.proof
def test_a_sound_model_learns():
    sizes = {"length": 4, "d_model": 16, "heads": 2, "d_ff": 32}
    regime = Regime.of("reversal", steps=200, every=200, rate=0.005, validation=50, **sizes)
    start, end = trained(FUSED, regime).points
    assert start.sequences < 0.1
    assert end.sequences > 0.9
    assert end.tokens >= end.sequences
    assert end.validation < 0.1 * start.validation


@pytest.mark.proof
def test_a_seed_gives_one_training_and_another_another():
    regime = small()
    same_state(trained(PLAIN, regime, 3), trained(PLAIN, regime, 3))
    assert losses(trained(PLAIN, regime, 4))[-1, 1] != losses(trained(PLAIN, regime, 3))[-1, 1]


def test_weights_are_those_of_xavier_and_the_same_wherever_shapes_agree():
    regime = Regime.of("copy", layers=2)
    tables = {
        name: weights(layout(regime, choices), 0)
        for name, choices in {
            "paper": Choices(tying="none"),
            "wide": Choices(tying="none", head_width="d", projection_bias="present"),
        }.items()
    }
    for name, values in tables["paper"].items():
        if values.ndim == 1:
            assert set(values) == {1.0 if name.endswith("gain") else 0.0}
            continue
        bound = (6 / sum(values.shape)) ** 0.5
        assert abs(values).max() <= bound
        # A uniform law has the variance bound^2 / 3, off by 0.9 / root n over n draws.
        assert abs((values**2).mean() * 3 / bound**2 - 1) < 4 * 0.9 / values.size**0.5
        if tables["wide"][name].shape == values.shape:
            np.testing.assert_array_equal(tables["wide"][name], values)
    table = {"one": Choices(), "wide": Choices(head_width="d")}
    differences = unequal({name: layout(regime, choices) for name, choices in table.items()})
    assert "have different shapes (self_attention.query.weight" in differences[0]


def test_tied_weights_start_equal():
    start = weights(layout(small(), Choices()), 0)
    np.testing.assert_array_equal(start["generator.weight"], start["source_embedding.weight"])


def test_every_parameter_has_a_start():
    choices = Choices(positional_encoding="learned", norm_sharing="shared")
    start = weights(layout(small(), choices), 0)
    wanted = shapes("model", small().sizes, choices)
    assert {name: one.shape for name, one in start.items()} == wanted


class Bent:
    """A backend whose model is put into a part of another kind."""

    def __init__(self, kind):
        self.kind = kind

    def __getattr__(self, name):
        return getattr(PLAIN, name)

    def build(self, *given, **named):
        return self.kind(PLAIN.build(*given, **named))


class Right:
    """A part that does what the part inside of it does."""

    def __init__(self, part):
        self.part = part

    def __getattr__(self, name):
        return getattr(self.part, name)

    def __call__(self, *inputs, method=""):
        return self.part(*inputs, method=method)


class Born(Right):
    def export(self):
        return {name: np.full_like(one, 0.25) for name, one in self.part.export().items()}


def test_own_weights_are_those_that_the_backend_is_born_with():
    start = Trainer.of(Bent(Born), small(initial="own"), 0).state.parameters
    assert {number for one in start.values() for number in one.flat} == {0.25}
    assert start.keys() == weights(layout(small(), Choices.of(PLAIN.choices)), 0).keys()


class WithoutMethods(Right):
    def __call__(self, *inputs, method=""):
        if method:
            raise Unsupported("no methods")
        return self.part(*inputs)


def test_a_model_without_encode_and_decode_is_decoded_as_a_whole():
    regime = small()
    same_state(trained(PLAIN, regime), trained(Bent(WithoutMethods), regime))


class Forging(Right):
    """A part that says 1 all the time, and writes that into the target it is given."""

    def __call__(self, source, target=None, method=""):
        if method or target is None:
            raise Unsupported("no methods")
        target[:] = 1
        return np.where(np.arange(11) == 1, 0.9, 0.01) * np.ones((*target.shape, 1))


def test_a_model_that_writes_into_its_target_does_not_change_what_is_wanted():
    for point in trained(Bent(Forging), small()).points:
        assert point.validation > 2.0
        assert point.sequences < 0.1


class Listening(Right):
    """A part that remembers in which mode it was asked which sources."""

    heard: ClassVar[list] = []
    mode = "evaluation"

    def train(self):
        self.mode = "training"
        self.part.train()

    def eval(self):
        self.mode = "evaluation"
        self.part.eval()

    def __call__(self, source, *rest, method=""):
        whole = self.part(source, *rest, method=method)
        if not method:
            self.heard.append((self.mode, source))
        return whole

    def vjp(self, inputs, cotangent):
        self.heard.append((self.mode, inputs[0]))
        return self.part.vjp(inputs, cotangent)


def test_it_trains_in_training_and_validates_in_evaluation_on_what_is_held_out():
    Listening.heard.clear()
    trained(Bent(Listening), small())
    modes = [mode for mode, _ in Listening.heard]
    # Two looks whether it is steady; at first, and after every two steps (forward and backward).
    steps = ["evaluation", *4 * ["training"]]
    assert modes == [*2 * ["training"], *3 * steps, "evaluation"]
    for mode, source in Listening.heard:
        assert {is_held_out(one) for one in source} == {mode == "evaluation"}


def test_greedy_takes_the_likeliest_token_and_goes_on_from_it():
    class Counting:
        def __call__(self, source, target=None, method=""):
            if method:
                raise Unsupported("no methods")
            return np.eye(9)[(target + 1) % 9]

    decoder = Decoder(Counting(), small().setting("logits"))
    written = decoder.written(np.zeros((2, 3), int), np.array([[1], [7]]), 4)
    np.testing.assert_array_equal(written, [[1, 2, 3, 4], [7, 8, 0, 1]])


class Unsteady(Right):
    def __call__(self, *inputs, method=""):
        return np.random.default_rng().random() * self.part(*inputs, method=method)


class Diverging(Right):
    def __call__(self, *inputs, method=""):
        return np.nan * self.part(*inputs, method=method)


class ShortOfGradients(Right):
    def vjp(self, *given):
        whole = self.part.vjp(*given)
        left = {name: one for name, one in whole.parameters.items() if name != "generator.bias"}
        return replace(whole, parameters=left)


class WithInfiniteGradients(Right):
    def vjp(self, *given):
        whole = self.part.vjp(*given)
        wrong = {**whole.parameters, "generator.bias": np.full(11, np.inf)}
        return replace(whole, parameters=wrong)


class WithoutGradient(Right):
    capabilities = ()


class Failing(Right):
    def vjp(self, *given):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Unsteady, "answers otherwise at each call while training"),
        (Diverging, "its loss is nan"),
        (ShortOfGradients, r"no gradient of the shape \(11,\) for generator.bias"),
        (WithInfiniteGradients, "after 0 steps its gradient of generator.bias is not finite"),
        (WithoutGradient, "offers no gradient"),
    ],
)
def test_a_model_that_cannot_be_trained_is_refused_with_the_reason(kind, why):
    with pytest.raises(Unavailable, match=why):
        trained(Bent(kind), small())


def test_an_error_of_the_backend_names_what_was_done():
    with pytest.raises(BackendError, match="training step 1 raised ZeroDivisionError"):
        trained(Bent(Failing), small())


def test_the_python_door_trains_side_by_side_and_shows_itself():
    heard = []
    found = learn(
        PLAIN,
        replace(FUSED, name="<b>"),
        Bent(WithoutGradient),
        steps=2,
        seeds=2,
        listener=lambda *one: heard.append(one),
        length=5,
        d_model=8,
        heads=2,
    )
    assert found.backends == ("plain", "<b>")
    assert [one.backend for one in found.failures] == ["plain (2)"]
    assert heard[:2] == [("plain", 0, 1), ("plain", 0, 2)]
    assert found.choices == {}
    assert found.spread("plain", "validation").least <= found.spread("plain", "validation").mean
    assert [row["step"] for row in found.rows()] == 4 * [0, 1, 2]
    assert "&lt;b&gt;" in found._repr_html_()
    assert found.as_dict()["backends"] == ["plain", "<b>"]
