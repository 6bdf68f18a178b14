"""The tasks: what they ask, what they hold out, and what they refuse."""

import numpy as np
import pytest

from attentest.studies.learning.decoding import accuracies
from attentest.studies.learning.learn import side_by_side
from attentest.studies.learning.regime import Regime
from attentest.studies.learning.task import (
    BEGIN,
    END,
    PAD,
    PLUS,
    ZERO,
    BadTask,
    is_held_out,
)
from attentest.studies.learning.tasks import TASKS
from attentest_spec import Limits, UnknownName


def number(tokens) -> int:
    return int("".join(str(token - ZERO) for token in tokens))


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("name", TASKS)
def test_a_batch_is_one_of_tokens_within_its_widths(name, held_out):
    task = TASKS[name]
    source, target = task.batch([1, 2], 30, task.length, held_out=held_out)
    assert (source.shape[1], target.shape[1]) == task.width(task.length)
    assert len(source) == len(target)
    assert task.every or len(source) == 30
    assert {source.dtype, target.dtype} == {np.dtype(np.int64)}
    assert (target[:, 0] == BEGIN).all()
    assert min(source.min(), target.min()) >= 0
    for tokens, vocabulary in zip((source, target), task.vocabularies(task.length), strict=True):
        assert tokens.max() < vocabulary


@pytest.mark.parametrize("name", TASKS)
def test_a_seed_gives_one_batch_and_another_seed_another(name):
    task = TASKS[name]
    one, same, other = (task.batch([0, 0, step], 30, task.length)[0] for step in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert np.array_equal(one, other) is (task.every is not None)


def test_copy_is_the_published_task():
    task = TASKS["copy"]
    source, target = task.batch([0], 30, 10)
    assert source.shape == (30, 10)
    assert task.vocabularies(10) == (11, 11)
    np.testing.assert_array_equal(source, target)
    assert set(np.unique(source[:, 1:])) == set(range(1, 11))
    assert (source[:, 0] == 1).all()


def test_reversal_turns_all_but_the_first_token():
    source, target = TASKS["reversal"].batch([0], 30, 6)
    np.testing.assert_array_equal(target[:, 1:], source[:, :0:-1])


def test_addition_adds():
    source, target = TASKS["addition"].batch([0], 200, 3)
    for question, answer in zip(source, target, strict=True):
        real = question[question != PAD]
        plus = list(real).index(PLUS)
        end = list(answer).index(END)
        assert number(real[:plus]) + number(real[plus + 1 :]) == number(answer[1:end])
        assert (answer[end + 1 :] == PAD).all()
    assert (source == PAD).any()


@pytest.mark.parametrize(("name", "length"), [("copy", 3), ("reversal", 3), ("addition", 1)])
def test_no_question_of_validation_is_trained_on_in_any_order(name, length):
    task = TASKS[name]
    sources = [task.batch([3], 2000, length, held_out=side)[0] for side in (False, True)]
    asked = [{tuple(sorted(row[row != PLUS])) for row in side} for side in sources]
    assert asked[0]
    assert asked[1]
    assert not asked[0] & asked[1]


def test_about_one_question_in_ten_is_held_out():
    questions = np.random.default_rng(0).integers(1, 10**6, size=(20_000, 2))
    share = np.mean([is_held_out(one) for one in questions])
    # Four standard deviations of a count of so many draws.
    assert abs(share - 0.1) < 4 * (0.1 * 0.9 / 20_000) ** 0.5


def test_a_task_that_is_too_small_says_so():
    with pytest.raises(BadTask, match="larger length"):
        TASKS["copy"].batch([0], 10, 1, held_out=True)


def test_accuracies_leave_pads_out():
    target = np.array([[1, 2, PAD], [3, 4, 5]])
    written = np.array([[1, 2, 9], [3, 0, 5]])
    assert accuracies(written, target, PAD) == (4 / 5, 1 / 2)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"steps": 0}, "steps is at least 1"),
        ({"heads": 5}, r"width \(d_model\) is a multiple of heads"),
        ({"smoothing": 1.0}, "smoothing is at least 0"),
        ({"rate": 0.0}, "greater than 0"),
        ({"clip": -1.0}, "clipped is greater than 0"),
        ({"weight_decay": -1.0}, "Weight decay is a number of at least 0"),
        ({"beta2": 1.0}, "adam_beta2 must be"),
        ({"rate": 0.1, "schedule": "cosine"}, "has no schedule"),
        ({"schedule": "linear", "steps": 10}, "its warm-up of 400 steps has to be shorter"),
        ({"length": -3}, "length is at least 1"),
    ],
)
def test_a_regime_that_cannot_be_is_refused(asked, why):
    with pytest.raises(BadTask, match=why):
        Regime.of("copy", **asked)


def test_numbers_whose_sum_is_no_int64_are_refused():
    source, _ = TASKS["addition"].batch([0], 3, 18)
    assert source.min() >= 0
    with pytest.raises(BadTask, match="at most 18 digits; 19 are too many"):
        Regime.of("addition", length=19)


@pytest.mark.parametrize("asked", [{"task": "cpoy"}, {"initial": "zero"}, {"precision": "float16"}])
def test_a_name_that_is_none_is_refused(asked):
    with pytest.raises(UnknownName):
        Regime.of(**asked)


def test_limits_of_one_hold_for_all_and_are_told():
    regime = Regime.of("copy", layers=3)
    fitted, notes = regime.fitted({"small": Limits(layers=1), "other": Limits()})
    assert fitted.sizes.layers == 1
    assert notes == ("layers is 1 instead of 3, for small is limited to that.",)


def test_a_task_longer_than_a_backend_takes_is_refused():
    with pytest.raises(BadTask, match="short is limited to 6"):
        Regime.of("copy").fitted({"short": Limits(length=6)})


def test_a_regime_survives_plain_values():
    regime = Regime.of("addition", rate=0.01, layers=2)
    assert Regime.from_dict(regime.as_dict()) == regime


@pytest.mark.parametrize("seeds", [(), (-1,)])
def test_invalid_seeds_are_refused(seeds: tuple[int, ...]) -> None:
    with pytest.raises(BadTask, match="Seeds are whole numbers from 0 on, and at least one"):
        side_by_side({}, Regime.of(), seeds)


def test_a_schedule_takes_the_place_of_the_rate_of_a_task():
    assert Regime.of("modular-addition").rate == 0.002
    regime = Regime.of("modular-addition", schedule="cosine", factor=0.01, warmup=5)
    assert (regime.rate, regime.schedule, regime.weight_decay) == (None, "cosine", 1.0)


def test_modular_addition_has_every_pair_on_one_side():
    task = TASKS["modular-addition"]
    sides = [task.batch([0], 1, 5, held_out=side) for side in (False, True)]
    source, target = (np.concatenate(one) for one in zip(*sides, strict=True))
    assert len({tuple(row) for row in source}) == len(source) == 25
    first, second, answer = source[:, 0] - ZERO, source[:, 2] - ZERO, target[:, 1] - ZERO
    np.testing.assert_array_equal((first + second) % 5, answer)
    for one, other in ((first, second), (second, first)):
        held_out = {pair for pair in zip(one, other, strict=True) if is_held_out(np.array(pair), 3)}
        assert len(held_out) == len(sides[1][0])
    with pytest.raises(BadTask, match="from 3 to 97; 2 is not"):
        task.batch([0], 1, 2)
