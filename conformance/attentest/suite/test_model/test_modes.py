"""Checks of the chapter `model`: training and evaluation."""

import numpy as np

from attentest.harness.errors import Absent
from attentest.harness.subject import Probe, Subject
from attentest.harness.tolerances import as_floats, distance, largest, rounding
from attentest.judging.check import check
from attentest.suite.test_model.cases import (
    ModelCall,
    agree,
    call_model,
    draw_call,
    first_names,
    inventory,
    require_dropout,
)
from attentest.testing.assertions import equal, holds
from attentest.testing.draw import Draw
from attentest_spec.setting import Array, Floats


@check("model.deterministic-in-eval", examples=2)
def test_deterministic_in_eval(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, dropout=0.5 if subject.limits.dropout else 0.0)
    first = case.output().copy()
    equal(case.output()[case.real], first[case.real], what="output of the second call")
    if subject.limits.dropout:
        sizes = case.sizes.but(dropout=0.0)
        plain = subject.part("model", sizes, parameters=case.probe.parameters)
        what = "output in evaluation mode, compared with a model without dropout,"
        agree(case, first, call_model(plain, *case.inputs), rows=case.real, what=what)


@check("model.random-in-train", examples=2)
def test_random_in_train(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    case = draw_call(subject, draw, dropout=0.5)
    case.probe.train()
    demand_randomness(case, "in training mode at a dropout rate of 0.5")


CALLS = 20
"""Calls of which two have to differ: one weight that is dropped alone agrees in half of them."""


def demand_randomness(case: ModelCall, when: str) -> None:
    """Demand different answers to the same call; in a thousand numbers no two draws agree.

    The second change finds a model that a call switches to evaluation. A model that drops its
    weights alone draws a few numbers, which may agree: it is called again.
    """
    before = case.output()[case.real].copy()
    for _ in range(2):
        calls = (case.output()[case.real].copy() for _ in range(CALLS))
        after = next((one for one in calls if distance(one, before) > 0), before)
        holds(after is not before, f"Two calls {when} give the same output.", actual=after)
        before = after


@check("model.training-without-dropout", examples=2)
def test_training_without_dropout(subject: Subject, draw: Draw) -> None:
    if subject.limits.fixed_dropout:
        raise Absent(f"{subject.name} has a rate of dropout that is fixed")
    lengths = (draw.length(1, 6), draw.length(2, 6))
    case = draw_call(subject, draw, batch=3, lengths=lengths, layers=draw.layers(1, 2), dropout=0.0)
    before = case.output().copy()
    case.probe.train()
    for _ in range(3):
        now = case.output()
        agree(case, now, before, rows=case.real, what="output in training mode without dropout")


@check("model.mode-comes-back", examples=2)
def test_mode_comes_back(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    case = draw_call(subject, draw, dropout=0.5)
    case.probe.train()
    demand_randomness(case, "in training mode at a dropout rate of 0.5")
    case.probe.eval()
    first = case.output()[case.real].copy()
    equal(case.output()[case.real], first, what="second output in evaluation mode after training")
    case.probe.train()
    demand_randomness(case, "in training mode, back from evaluation,")
    case.probe.eval()
    equal(case.output()[case.real], first, what="output in evaluation mode after more training")


@check("model.modes-reach-all", examples=2)
def test_modes_reach_all(subject: Subject, draw: Draw) -> None:
    case = draw_call(subject, draw, loaded=False, layers=draw.layers(1, 2))
    for training, switch in ((True, case.probe.train), (False, case.probe.eval)):
        switch()
        _all_modes(case.probe, training=training)
        case.probe.output(*case.inputs)
        _all_modes(case.probe, training=training)


def _all_modes(probe: Probe, *, training: bool) -> None:
    modes = inventory(probe)["modes"]
    wrong = [name or "the model" for name, mode in modes.items() if mode != training]
    asked = "training" if training else "evaluation"
    holds(bool(modes), "The inventory lists no parts.")
    holds(
        not wrong,
        f"{len(wrong)} of {len(modes)} parts are not in {asked} mode: {first_names(wrong)}.",
    )


@check("model.dropout-sites", examples=2)
def test_dropout_sites(subject: Subject, draw: Draw) -> None:
    require_dropout(subject)
    if subject.choices.norm_epsilon == 0:
        raise Absent(f"{subject.name} norms without an epsilon: rows of zeros have no value")
    longest = draw.length(3, 6)
    case = draw_call(subject, draw, batch=3, lengths=(longest, longest), dropout=0.9999)
    sizes = case.sizes
    source = _distinct(draw, case.source, sizes.source_vocabulary, sizes.source_pad)
    target = _distinct(draw, case.target, sizes.target_vocabulary, sizes.target_pad)
    awake = _states(case.probe, source, target)
    case.probe.train()
    for side, states in _states(case.probe, source, target).items():
        spread = float(_differences(awake[side]).max())
        holds(spread > 0, f"All states of the {side} are the same in evaluation mode.")
        reach = 0.02 * spread + rounding(case.probe.precision, 1) * largest(states)
        same = int((_differences(states) <= reach).sum(axis=1).max())
        holds(
            same > 0.4 * target.size,
            f"At a dropout rate of 0.9999 only {same} of {target.size} states of the {side} are "
            "the same: its embedding is not dropped.",
        )


def _states(probe: Probe, source: Array, target: Array) -> dict[str, Array]:
    """Return the states of both sides: the memory, and the output."""
    return {
        "source": probe.output(source, method="encode"),
        "target": probe.output(source, target),
    }


def _differences(states: Array) -> Floats:
    """Return the differences between any two rows of `states`; dropped rows are the same."""
    rows = as_floats(states).reshape(-1, states.shape[-1])
    differences: Floats = np.abs(rows[:, None] - rows[None]).max(axis=-1)
    return differences


def _distinct(draw: Draw, tokens: Array, vocabulary: int, pad: int) -> Array:
    """Return real tokens of the shape of `tokens`, no two of one sentence alike."""
    real = [token for token in range(vocabulary) if token != pad]
    return np.stack([draw.rng.permutation(real)[: tokens.shape[1]] for _ in tokens])
