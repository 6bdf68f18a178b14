"""Decoding: values by hand, all sequences enumerated, and torch's own functions."""

import warnings
from itertools import product

import numpy as np
import pytest
import torch

from attentest_spec.choices import PAPER, Value
from attentest_spec.decoding import (
    Hypothesis,
    beam_search,
    continue_greedily,
    greedy_decoding,
    log_probabilities,
    sampling,
    score,
)
from attentest_spec.generator import log_softmax
from attentest_spec.setting import Array, Floats, Setting
from attentest_spec.sizes import Sizes
from attentest_spec.torch import Script

PAD, START, END, A, B = range(5)
BEGIN = np.array([[START]])


def setting(alpha: float = 0.0, *, sizes: Sizes | None = None, **choices: Value) -> Setting:
    return Setting((sizes or Sizes()).but(alpha=alpha), PAPER.but(**choices))


@pytest.fixture
def garden_path() -> Floats:
    """Return probabilities under which the best first token does not begin the best sequence."""
    scores = np.full((1, 3, 5, 5), 1e-9)
    scores[0, 0, START, [A, B, END]] = 0.5, 0.4, 0.1
    scores[0, 1, A, [A, B, END]] = 0.4, 0.3, 0.3
    scores[0, 1, B, [A, END]] = 0.1, 0.9
    return scores


def test_greedy_takes_the_best_token_at_every_step(garden_path: Floats) -> None:
    np.testing.assert_array_equal(
        greedy_decoding(setting(), garden_path, BEGIN, 3), [[START, A, A]]
    )
    np.testing.assert_array_equal(greedy_decoding(setting(), garden_path, BEGIN, 1), BEGIN)


def test_beam_finds_what_greedy_misses(garden_path: Floats) -> None:
    tokens, scores = beam_search(setting(), garden_path, BEGIN, 3, 2)
    np.testing.assert_array_equal(tokens, [[[START, B, END], [START, A, A]]])
    np.testing.assert_allclose(scores, np.log([[0.36, 0.2]]))
    _, penalised = beam_search(setting(1.0), garden_path, BEGIN, 3, 2)
    np.testing.assert_allclose(penalised, np.log([[0.36, 0.2]]) * 6 / 7)


@pytest.mark.parametrize(
    ("choices", "penalty"),
    [
        ({}, 8 / 6),
        ({"length_penalty": "power"}, 3.0),
        ({"length_penalty": "none"}, 1.0),
        ({"counted_length": "without-end"}, 7 / 6),
        ({"counted_length": "all"}, 9 / 6),
        ({"counted_length": "all", "length_penalty": "power"}, 4.0),
    ],
)
def test_score_is_the_sum_over_the_penalty(choices: dict[str, Value], penalty: float) -> None:
    one = Hypothesis((START,), (A, B, END), -6.0, finished=True)
    assert score(setting(1.0, **choices), one) == pytest.approx(-6.0 / penalty)
    assert score(setting(0.5, **choices), one) == pytest.approx(-6.0 / penalty**0.5)


@pytest.mark.parametrize(
    ("one", "choices", "penalty"),
    [
        (Hypothesis((START,), (A, B), -6.0), {"counted_length": "without-end"}, 7 / 6),
        (Hypothesis((START, A), (B,), -6.0), {"counted_length": "all"}, 8 / 6),
        (Hypothesis((START,), (), -6.0), {"length_penalty": "power"}, 1.0),
    ],
)
def test_penalty_counts_tokens_that_are_there(
    one: Hypothesis, choices: dict[str, Value], penalty: float
) -> None:
    """Without an end none is taken off, all given tokens count, and of none there is no power."""
    assert score(setting(1.0, **choices), one) == pytest.approx(-6.0 / penalty)


def script(seed: int, *, batch: int = 1, ids: int = 5, length: int = 6) -> Floats:
    """Return log-probabilities (B, L, V, V) in which padding is impossible."""
    logits = np.random.default_rng(seed).normal(scale=2.0, size=(batch, length, ids, ids))
    logits[..., PAD] = -50.0
    return log_softmax(logits)


LOGARITHMS = {"output": "log-probabilities"}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("finished_beams", ["in-beam", "set-aside"])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_widest_beam_finds_the_best_of_all_sequences(
    seed: int, finished_beams: str, alpha: float
) -> None:
    given = setting(alpha, finished_beams=finished_beams, **LOGARITHMS)
    scores = script(seed)  # 4 tokens at each of 5 places: 1,365 sequences at most
    best = max(
        (score(given, one), one.new)
        for one in {enumerated(scores[0], words) for words in product(range(1, 5), repeat=5)}
    )
    tokens, values = beam_search(given, scores, BEGIN, 6, 4**5)
    assert values[0, 0] == pytest.approx(best[0])
    assert tuple(tokens[0, 0, 1 : 1 + len(best[1])]) == best[1]
    narrow = [beam_search(given, scores, BEGIN, 6, beams)[1][0, 0] for beams in (1, 2, 3)]
    assert max(narrow) <= best[0] + 1e-12


def enumerated(scores: Floats, words: tuple[int, ...]) -> Hypothesis:
    """Return the hypothesis of `words` up to their first end token, added up one by one."""
    new = words[: words.index(END) + 1] if END in words else words
    total = sum(
        float(scores[place, before, word])
        for place, (before, word) in enumerate(zip((START, *new), new, strict=False))
    )
    return Hypothesis((START,), new, round(total, 12), END in new)


@pytest.mark.parametrize("seed", range(5))
def test_one_beam_is_greedy(seed: int) -> None:
    scores = script(seed, batch=3)
    begin = np.repeat(BEGIN, 3, axis=0)
    greedy = greedy_decoding(setting(**LOGARITHMS), scores, begin, 6)
    for finished_beams in ("in-beam", "set-aside"):
        given = setting(finished_beams=finished_beams, **LOGARITHMS)
        np.testing.assert_array_equal(beam_search(given, scores, begin, 6, 1)[0][:, 0], greedy)


def test_finished_hypotheses_aside_leave_their_beams_to_open_ones() -> None:
    """Two beams, of which the end takes one at once: the third best token is followed, too."""
    scores = np.full((1, 3, 5, 5), 1e-9)
    scores[0, 0, START, [END, A, B]] = 0.5, 0.3, 0.2
    scores[0, 1, A, [A, B]] = 0.5, 0.5
    scores[0, 1, B, END] = 1.0
    tokens, found = beam_search(setting(finished_beams="set-aside"), scores, BEGIN, 3, 2)
    np.testing.assert_array_equal(tokens, [[[START, END, PAD], [START, B, END]]])
    np.testing.assert_allclose(found, np.log([[0.5, 0.2]]))
    tokens, found = beam_search(setting(finished_beams="in-beam"), scores, BEGIN, 3, 2)
    np.testing.assert_array_equal(tokens, [[[START, END, PAD], [START, A, A]]])
    np.testing.assert_allclose(found, np.log([[0.5, 0.15]]))


def test_beam_of_logits_is_that_of_their_logarithms() -> None:
    logits = np.random.default_rng(6).normal(scale=2.0, size=(1, 4, 5, 5))
    found = beam_search(setting(output="logits"), logits, BEGIN, 4, 3)
    expected = beam_search(setting(**LOGARITHMS), log_softmax(logits), BEGIN, 4, 3)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_logarithms_of_zero_and_below_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = log_probabilities(setting(), np.array([0.0, -1.0, 1.0]))
    np.testing.assert_array_equal(found, [-np.inf, np.nan, 0.0])


def test_hypotheses_beside_finished_ones_are_ranked_by_their_sums() -> None:
    """The penalty would rank the end below the token that is less likely."""
    scores = np.full((1, 3, 5, 5), 1e-9)
    scores[0, 0, START, [END, A]] = 0.6, 0.4
    scores[0, 1, A, [A, END]] = 0.55, 0.45
    choices: dict[str, Value] = {"finished_beams": "set-aside", "beam_stop": "n-finished"}
    given = setting(9.0, counted_length="without-end", **choices)
    tokens, _ = beam_search(given, scores, BEGIN, 3, 1)
    np.testing.assert_array_equal(tokens, [[[START, END, PAD]]])


def test_early_stop_gives_up_open_hypotheses() -> None:
    scores = np.full((1, 3, 5, 5), -30.0)
    scores[0, 0, START, [A, END]] = np.log([0.6, 0.4])
    scores[0, 1, A, [A, END]] = np.log([0.7, 0.3])
    scores[0, 2, A, [END, A]] = np.log([0.9, 0.1])
    rest = {"finished_beams": "set-aside", "length_penalty": "power", **LOGARITHMS}
    late, _ = beam_search(setting(1.0, **rest), scores, BEGIN, 4, 1)
    np.testing.assert_array_equal(late, [[[START, A, A, END]]])
    wide, _ = beam_search(setting(1.0, beam_stop="n-finished", **rest), scores, BEGIN, 4, 2)
    np.testing.assert_array_equal(wide[0, :, 1:3], [[A, END], [END, PAD]])
    for stop, best in (("n-before-length", [A, END, PAD]), ("length", [A, A, END])):
        found, _ = beam_search(setting(1.0, beam_stop=stop, **rest), scores, BEGIN, 4, 2)
        np.testing.assert_array_equal(found[0, 0, 1:], best)
    rest["beam_stop"] = "n-finished"
    at_length, _ = beam_search(setting(1.0, **rest), scores, BEGIN, 3, 2)
    np.testing.assert_array_equal(at_length[0, :, 1:], [[A, END], [END, PAD]])
    rest["beam_stop"] = "n-before-length"
    before, _ = beam_search(setting(1.0, **rest), scores, BEGIN, 3, 2)
    np.testing.assert_array_equal(before[0, :, 1:], [[A, A], [A, END]])


@pytest.mark.parametrize(
    ("choices", "tokens"),
    [
        ({}, [START, A, END, PAD, PAD]),
        ({"after_end": "end"}, [START, A, END, END, END]),
        ({"decoding_stop": "length"}, [START, A, END, B, A]),
    ],
)
def test_filling_after_the_end_is_declared(choices: dict[str, Value], tokens: list[int]) -> None:
    scores = np.zeros((1, 4, 5, 5))
    for place, (before, after) in enumerate(((START, A), (A, END), (END, B), (B, A))):
        scores[0, place, before, after] = 1.0
    found = greedy_decoding(setting(**choices), scores, BEGIN, 5)
    np.testing.assert_array_equal(found, [tokens])


def test_padding_in_the_given_tokens_is_no_token() -> None:
    scores = script(1, batch=1, length=8)
    for padded in ([PAD, PAD, START, A], [START, A, PAD, PAD]):
        found = greedy_decoding(setting(**LOGARITHMS), scores, np.array([padded]), 7)
        plain = greedy_decoding(setting(**LOGARITHMS), scores, np.array([[START, A]]), 5)
        np.testing.assert_array_equal(found[0, :4], padded)
        np.testing.assert_array_equal(found[0, 4:], plain[0, 2:])


# Sampling

LOGITS = np.log([[4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]])


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, [4, 3, 2, 1]),
        ({"top_k": 2}, [4, 3, 0, 0]),
        ({"top_k": 9}, [4, 3, 2, 1]),
        ({"top_p": 0.5}, [4, 3, 0, 0]),
        ({"top_p": 0.39}, [4, 0, 0, 0]),
        ({"top_p": 0.01}, [4, 0, 0, 0]),
        ({"temperature": 0.5}, [16, 9, 4, 1]),
        ({"temperature": 0.5, "top_p": 0.6}, [16, 9, 0, 0]),
        ({"top_k": 3, "top_p": 0.77}, [4, 3, 0, 0]),
    ],
)
def test_distribution_is_that_by_hand(settings: dict[str, float], parts: list[int]) -> None:
    expected = np.array([parts, parts[::-1]]) / sum(parts)
    given = Setting(Sizes().but(**settings))
    np.testing.assert_allclose(sampling(given, LOGITS), expected, rtol=1e-12)


def test_order_and_nucleus_change_what_is_kept() -> None:
    sizes = Sizes(temperature=2.0, top_p=0.65)
    first = sampling(setting(sizes=sizes), LOGITS)
    second = sampling(setting(sizes=sizes, filter_order="filters-first"), LOGITS)
    np.testing.assert_array_equal((first > 0).sum(axis=-1), [3, 3])
    np.testing.assert_array_equal((second > 0).sum(axis=-1), [2, 2])
    roots = np.sqrt([4.0, 3.0])
    np.testing.assert_allclose(second[0, :2], roots / roots.sum(), rtol=1e-12)
    few = Sizes(top_k=3, top_p=0.75)
    rest = sampling(setting(sizes=few), LOGITS)
    every = sampling(setting(sizes=few, nucleus="of-all"), LOGITS)
    np.testing.assert_array_equal((rest > 0).sum(axis=-1), [2, 2])
    np.testing.assert_array_equal((every > 0).sum(axis=-1), [3, 3])


def test_ties_at_the_threshold_are_kept() -> None:
    given = Setting(Sizes(top_k=2))
    np.testing.assert_allclose(sampling(given, np.array([[1.0, 1.0, 1.0, 0.0]]))[0, 3], 0.0)


@pytest.mark.parametrize(
    ("weights", "share", "expected"),
    [
        ([1, 1], 0.5, [1, 0]),
        ([3, 1], 0.0, [1, 0]),
        ([999, 1], 0.995, [1, 0]),
        ([999, 1], 0.9995, [0.999, 0.001]),
        ([1, 1e-20], 1.0, [1, 1e-20]),
    ],
)
def test_nucleus_ends_where_its_share_is_reached(
    weights: list[float], share: float, expected: list[float]
) -> None:
    found = sampling(Setting(Sizes(top_p=share)), np.log(np.array([weights], dtype=float)))
    np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_nucleus_of_equal_tokens_is_that_of_the_lowest_ids() -> None:
    found = sampling(Setting(Sizes(top_p=0.1)), np.tile([[0.0, -1000.0]], (1, 64)))
    np.testing.assert_array_equal(np.flatnonzero(found[0]), np.arange(0, 14, 2))


@pytest.mark.parametrize("count", [1, 3, 7])
def test_top_k_is_that_of_torch(rng: np.random.Generator, count: int) -> None:
    logits = rng.normal(size=(4, 7))
    values, places = torch.from_numpy(logits).topk(count, dim=-1)
    expected = torch.zeros(4, 7, dtype=torch.float64).scatter(1, places, values.softmax(dim=-1))
    np.testing.assert_allclose(sampling(Setting(Sizes(top_k=count)), logits), expected, rtol=1e-12)


# The scripted model of torch


def scripted(scores: Floats, sizes: Sizes) -> Script:
    return Script(sizes).eval().play(torch.from_numpy(scores))


def test_script_answers_by_the_last_token_and_the_number_of_tokens() -> None:
    scores = script(3, batch=2)
    model = scripted(scores, Sizes())
    target = torch.tensor([[START, A, B], [START, B, B]])
    answer = model(model.source, target)
    expected = [[scores[b, t, target[b, t]] for t in range(3)] for b in range(2)]
    np.testing.assert_array_equal(answer, expected)


def test_script_leads_astray_at_padding_and_in_training() -> None:
    scores = script(4)
    model = scripted(scores, Sizes())
    memory = model.memory(model.source)
    padded = model.answer(torch.tensor([[PAD, START, A, PAD]]), memory)
    np.testing.assert_array_equal(padded[0, 1], scores[0, 0, START])
    np.testing.assert_array_equal(padded[0, 2], scores[0, 1, A])
    np.testing.assert_array_equal(padded[0, 3], scores[0, 1, A, ::-1])
    trained = model.train().answer(torch.tensor([[START]]), memory)
    np.testing.assert_array_equal(trained[0, 0], scores[0, 0, START, ::-1])


def test_script_knows_its_sequences_by_their_source() -> None:
    scores = script(5, batch=3)
    sizes = Sizes(source_pad=1)
    model = scripted(scores, sizes)
    assert not (model.source == sizes.source_pad).any()
    order: Array = np.array([2, 0])
    answer = model(model.source[order], torch.full((2, 1), START))
    np.testing.assert_array_equal(answer[:, 0], scores[order, 0, START])


def test_decoding_a_function_asks_until_all_sequences_have_ended() -> None:
    asked = []

    def following(tokens: Array) -> Floats:
        asked.append(tokens.tolist())
        return np.eye(5)[np.where(tokens[:, -1] == A, END, A)]

    found = continue_greedily(setting(), following, np.array([[START], [A]]), 5)
    np.testing.assert_array_equal(found, [[START, A, END, PAD, PAD], [A, END, PAD, PAD, PAD]])
    assert asked == [[[START], [A]], [[START, A], [A, END]]]
