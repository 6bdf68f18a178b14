"""The options of a beam search: which of the listed ones give its hypotheses in probing calls."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from attentest.targets.adapt.reading import Reading
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.decoding import beam_search, greedy_decoding
from attentest_spec.generator import normalised
from attentest_spec.setting import Array, Floats

SIZES = Sizes(target_vocabulary=9, source_vocabulary=9, source_pad=4, target_pad=4, start=7, end=5)
"""The sizes of probing calls: no id is one that code has by habit."""

BEGIN = np.full((2, 1), SIZES.start)
_NEW = 5
DESIGN = frozenset(("finished_beams", "length_penalty"))
"""The choices that say which search is meant."""


@dataclass(frozen=True, eq=False)
class Case:
    """A probing call: logits (2, L, V, V) of a scripted model, beams and an exponent."""

    logits: Floats
    beams: int = 3
    alpha: float = 0.0
    length: int = _NEW + 1

    def scores(self, output: str) -> Floats:
        """Return the scores as `output` says."""
        return normalised(output, self.logits)

    def expected(self, option: "Option") -> tuple[Array, Floats]:
        """Return the hypotheses and scores of the reference."""
        options, alpha = option
        sizes = SIZES.but(alpha=self.alpha if alpha is None else alpha)
        setting = Setting(sizes, Choices(**{**options, "output": "logits"}))
        return beam_search(setting, self.logits, BEGIN, self.length, self.beams)

    def hypotheses(self, option: "Option") -> Array:
        """Return the hypotheses of the reference, with padding after their ends."""
        return self.cut(self.expected(option)[0])

    def cut(self, tokens: Array) -> Array:
        """Return tokens (.., M) with padding after a new end token."""
        return np.where(self.is_after_end(tokens), SIZES.target_pad, tokens)

    def best(self, *, stops: bool) -> Array:
        """Return the sequence of the best tokens."""
        stop = "end-token" if stops else "length"
        setting = Setting(SIZES, Choices(output="logits", decoding_stop=stop))
        return greedy_decoding(setting, self.logits, BEGIN, self.length)

    def is_after_end(self, tokens: Array) -> Array:
        """Return where tokens (.., M) come after a new end token."""
        ends = tokens == SIZES.end
        after: Array = np.cumsum(ends, axis=-1) - ends > 0
        return after


def peaked(ends: Sequence[int]) -> Case:
    """Return a case with one likely sequence, which ends with its new token number `ends`."""
    rng = np.random.default_rng(0)
    ids = SIZES.target_vocabulary
    logits = rng.permuted(np.tile(np.arange(ids), (2, _NEW + 2, ids, 1)), axis=-1) * 12.0
    logits[..., [SIZES.end, SIZES.start, SIZES.target_pad]] = -90.0
    for sequence, end in enumerate(ends):
        if end:
            logits[sequence, end - 1, :, SIZES.end] = 140.0
    return Case(logits)


def drawn(number: int) -> Case:
    """Draw a case in which hypotheses end at several steps."""
    rng = np.random.default_rng(number)
    ids = SIZES.target_vocabulary
    logits = np.round(rng.normal(scale=1.5, size=(2, _NEW + 2, ids, ids)), 3)
    logits[..., SIZES.end] += (0.8, 1.5, 2.2)[number % 3]
    logits[..., [SIZES.target_pad, SIZES.start]] = -30.0
    return Case(logits, beams=2 + number % 2, alpha=(0.6, 1.0, 0.0, 1.0)[number % 4])


@dataclass(frozen=True)
class Probing:
    """A search that is tried: its call for a case and a kind of scores, and what its code shows."""

    called: Callable[[Case, str], tuple[Array, Floats | None]]
    takes_alpha: bool
    stops: bool
    constants: Sequence[float]


@dataclass(frozen=True)
class Measured:
    """The options that give all hypotheses, a fixed exponent, and how exact the scores are.

    `error` is the largest difference of a score from the reference, 0 where none is returned.
    """

    choices: dict[str, Value]
    alpha: float | None
    error: float


Option = tuple[dict[str, Any], float | None]
"""Options of choices, and a fixed exponent."""

_FEW, _MANY = 12, 120
"""The cases that every option is tried with, and those that are drawn to tell options apart."""


def measured(probing: Probing, reading: Reading) -> Measured | None:
    """Return the options under which the reference has the hypotheses of all cases, or None."""
    outputs = ("logits", "log-probabilities", "probabilities")
    for output in (one for one in outputs if reading.choices.get("output", one) == one):
        try:
            answers = {case: probing.called(case, output) for case in map(drawn, range(_FEW))}
            fitting = _narrowed([*_options(probing, reading)], probing, output, answers)
        except Exception:  # code that a user wrote may raise anything
            continue
        if fitting:
            return _best(fitting, answers, output)
    return None


Answers = dict["Case", tuple[Array, Floats | None]]


def _narrowed(
    options: Sequence[Option], probing: Probing, output: str, answers: Answers
) -> list[Option]:
    """Return the options that fit the answers, and those to cases in which they differ."""
    fitting = [
        one
        for one in options
        if all(_same(case, found, one) for case, (found, _) in answers.items())
    ]
    for number in range(_FEW, _MANY):
        if len(fitting) < 2:
            break
        case, returned = drawn(number), next(iter(answers.values()))[0].shape[1]
        kinds = {case.hypotheses(one)[:, :returned].tobytes() for one in fitting}
        if len(kinds) > 1:
            answers[case] = probing.called(case, output)
            fitting = [one for one in fitting if _same(case, answers[case][0], one)]
    return fitting


def _best(fitting: Sequence[Option], answers: Answers, output: str) -> Measured:
    """Return the options whose scores are the nearest, of equals the first."""
    errors = [
        max(_error(case, scores, one) for case, (_, scores) in answers.items()) for one in fitting
    ]
    (options, alpha), error = min(
        zip(fitting, errors, strict=True), key=lambda pair: round(pair[1], 4)
    )
    return Measured({"output": output, **options}, alpha, error)


def _options(probing: Probing, reading: Reading) -> Iterator[Option]:
    """Yield the options of the four choices, with a fixed exponent where none is an argument."""
    exponents: tuple[float | None, ...] = (None,)
    if not probing.takes_alpha:
        exponents = tuple(dict.fromkeys((*probing.constants, 1.0, 0.6, 0.7, 0.75)))
    stop = "end-token" if probing.stops else "length"
    for finished, ends in _ENDS:
        rest = {"finished_beams": finished, "beam_stop": ends, "decoding_stop": stop}
        if not probing.takes_alpha:
            yield from _allowed({**rest, "length_penalty": "none"}, None, reading)
        for alpha, penalty, counted in product(exponents, ("wu", "power"), _COUNTED):
            named = {"length_penalty": penalty, "counted_length": counted}
            yield from _allowed({**rest, **named}, alpha, reading)


_ENDS = (
    ("in-beam", "length"),
    ("set-aside", "length"),
    ("set-aside", "n-finished"),
    ("set-aside", "n-before-length"),
)
_COUNTED = ("new", "without-end", "all")


def _allowed(options: dict[str, Any], alpha: float | None, reading: Reading) -> Iterator[Option]:
    if all(reading.choices.get(name, value) == value for name, value in options.items()):
        yield options, alpha


def _same(case: Case, found: Array, option: Option) -> bool:
    """Say whether the hypotheses, up to their ends, are those of the reference."""
    return np.array_equal(case.cut(found), case.hypotheses(option)[:, : found.shape[1]])


def _error(case: Case, found: Floats | None, option: Option) -> float:
    """Return the largest difference of a score from that of the reference."""
    if found is None:
        return 0.0
    expected = case.expected(option)[1][:, : found.shape[1]]
    return float(np.abs(found - expected).max())
