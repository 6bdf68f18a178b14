"""Calls to look at: small examples in which no two lengths are equal, and the failing ones."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from attentest.analysis.lines.formula import Formula, Step
from attentest.analysis.lines.formulas import build
from attentest.analysis.lines.inputs import USUAL, Inputs, Lengths, sizes_within
from attentest.analysis.lines.recorders import recorder
from attentest.analysis.lines.recording import Recording, Swap, same
from attentest.harness.arithmetic import arithmetic
from attentest.harness.copies import cast
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import BACKEND, Answer, Probe, Question, Subject
from attentest.harness.subject import Step as Action
from attentest.harness.tolerances import as_floats, error_bound
from attentest_spec import COMPONENTS, Choices
from attentest_spec.parameters import draw as draw_parameters
from attentest_spec.setting import Array

TOLERANCES = {"float64": 1e-11, "float32": 3e-5}
"""The relative difference up to which two values count as equal, by the arithmetic."""

_NEAR = 1e-3
"""The relative difference up to which it is asked whether rounding explains it."""

_SLIGHT = 1e-5
"""The relative difference that steps in float32 make, and no mistake in the formula."""


@dataclass(frozen=True)
class Case:
    """One call among the steps of an example, and the formula that it has to follow.

    `first` holds the number of the first operation of the call, once it has run. `coarse` code
    computes in single precision inside, whatever it is given. A `strict` case allows no rounding
    for tables of positions in single precision: the reference has the same.
    """

    subject: Subject
    steps: Sequence[Action]
    at: int
    question: Question
    choices: Choices
    first: list[int] = field(default_factory=list)
    coarse: bool = False
    strict: bool = False

    @cached_property
    def tolerance(self) -> float:
        """The relative tolerance of the arithmetic; 0 where it is too coarse to tell steps."""
        probe = self.question.probe
        table = self.choices.position_arithmetic == "float32" and not self.strict
        single = self.coarse or (table and probe.component in _WITH_POSITIONS)
        coarse = "float32" if single else ""
        return TOLERANCES.get(coarse or arithmetic(probe, self.choices), 0.0)

    @cached_property
    def drops(self) -> bool:
        """Whether the call is one of training with dropout, whose numbers are no formula's."""
        part = self._built[self.steps[self.at].asked]
        known = self.question.probe.sizes.dropout > 0 and "inventory" in part.capabilities
        return known and any(part.inventory()["modes"].values())

    @cached_property
    def formula(self) -> Formula:
        """The steps of the reference, none where it has no formula for the call."""
        probe = self.question.probe
        made = Formula(probe.sizes, self.choices, probe.parameters, self.subject.declared)
        names = COMPONENTS[probe.component].inputs
        if self.question.method:
            names = {"encode": ("source",), "decode": ("target", "memory", "source")}[
                self.question.method
            ]
        given = dict(zip(names, self.question.inputs, strict=False))
        build(made, probe.component, self.question.method, given)
        return made

    @cached_property
    def expected(self) -> Answer:
        """The answer of the reference."""
        return self.question.probe.expected(
            *self.question.inputs, method=self.question.method, choices=self.choices
        )

    @cached_property
    def target(self) -> Step | None:
        """The step that the wrong array of the answer should be; None where all are right."""
        output = self.formula.output
        given, wanted = Answer.of(self.steps[self.at].outcome[0]), self.expected
        if not self._equal(wanted.output, output.value):
            return None  # the formula is not the reference's: an option that it does not know
        if not self._equal(given.output, wanted.output):
            return output
        if given.weights is not None and not self._equal(given.weights, wanted.weights):
            return next((one for one in self.formula.steps if one.name == "weights"), None)
        return None

    @cached_property
    def is_slight(self) -> bool:
        """Whether the answer is wrong by no more than the rounding of one step in float32."""
        given = Answer.of(self.steps[self.at].outcome[0]).output
        found, wanted = as_floats(given), as_floats(self.expected.output)
        if found.shape != wanted.shape:
            return False
        known = np.isfinite(wanted)
        worst = np.abs(found - wanted)[known].max(initial=0.0)
        return bool(worst <= _SLIGHT * np.abs(wanted[known]).max(initial=1e-300))

    def _equal(self, actual: Any, expected: Any) -> bool:
        """Say whether two arrays are equal up to rounding, where the reference has a value."""
        found, wanted = as_floats(actual), as_floats(expected)
        if found.shape != wanted.shape:
            return False
        known = np.isfinite(wanted)
        size = np.abs(wanted[known]).max(initial=1e-300)
        with np.errstate(invalid="ignore"):
            worst = np.abs(found - wanted)[known].max(initial=0.0)
        if worst <= self.tolerance * size:
            return True
        return bool(worst <= _NEAR * size and worst <= self._bound)

    @cached_property
    def _bound(self) -> float:
        """The error of the output that the rounding of correct code may make."""
        expected = as_floats(self.expected.output)
        probe, inputs = self.question.probe, self.question.inputs
        return error_bound(
            probe, inputs, expected, method=self.question.method, choices=self.choices
        )

    def run(self, recording: Recording) -> Any:
        """Repeat the example up to the call under `recording`; return the outcome of the call."""

        def outcome() -> Any:
            parts = self._parts()
            self.first[:] = [recording.count]
            return self._call(parts)

        return recording.run(outcome)

    def recording(self, **settings: Any) -> Recording:
        """Return a recording of the framework that the backend computes in."""
        record = recorder(self.subject.backend)
        assert record is not None
        return record(**settings)

    def call(
        self, puts: Mapping[int, Array], own: Sequence[str] = (), swap: Swap | None = None
    ) -> Any:
        """Repeat the call with `puts` in the place of results and `swap` of inputs; its outcome.

        What comes before the call is repeated only where it is changed.
        """
        first = self.first[0]
        if min([*puts, *([swap.first] if swap else [])]) < first:
            return self.run(self.recording(puts=puts, keep=False, own=own, swap=swap))
        parts = self._built
        recording = self.recording(puts=puts, keep=False, begin=first, own=own, swap=swap)
        return recording.run(lambda: self._call(parts))

    def _parts(self) -> dict[int, Any]:
        """Return the parts of the example as they are before the call."""
        parts: dict[int, Any] = {BACKEND: self.subject.backend}
        for step in self.steps[: self.at]:
            if step.question is not None:
                continue  # another call: it makes no part
            try:
                outcome = step.ask(parts[step.asked])
            except Exception:
                continue  # a step that failed made nothing
            if step.made is not None:
                parts[step.made] = outcome
        return parts

    @cached_property
    def _built(self) -> dict[int, Any]:
        return self._parts()

    def _call(self, parts: Mapping[int, Any]) -> Any:
        step = self.steps[self.at]
        try:
            answer, _ = step.ask(parts[step.asked])  # without the inputs, which are given back
        except Exception as failure:
            return failure
        return answer

    def is_repeated(self, outcome: Any) -> bool:
        """Say whether the outcome of the call is the one that the example had: none at random.

        Compiled code rounds in other ways than its steps do.
        """
        if isinstance(outcome, BaseException) or outcome is None:
            return False
        first, again = (Answer.of(one).output for one in (self.steps[self.at].outcome[0], outcome))
        return same(first, again) or (not self._is_exact and self._equal(again, first))

    @property
    def _is_exact(self) -> bool:
        """Whether a recorded call computes the very numbers of one that is not recorded."""
        record = recorder(self.subject.backend)
        return record is not None and record.is_exact

    def is_right(self, outcome: Any) -> bool:
        """Say whether the outcome of the call is what the reference answers."""
        if isinstance(outcome, BaseException) or outcome is None:
            return False
        answer = Answer.of(outcome)
        if not self._equal(answer.output, self.expected.output):
            return False
        both = answer.weights is not None and self.expected.weights is not None
        return not both or self._equal(answer.weights, self.expected.weights)


WHOLE = ("model", "language_model")
_WITH_POSITIONS = ("positional_encoding", *WHOLE)


def wrong_calls(
    subject: Subject, steps: Sequence[Action], *, strict: bool = False
) -> Iterator[Case]:
    """Yield the calls among `steps` whose answer is known to differ from the reference's."""
    for number, step in enumerate(steps):
        if step.question is None or isinstance(step.outcome, BaseException):
            continue
        case = Case(subject, steps, number, step.question, subject.choices, strict=strict)
        try:
            is_known = case.tolerance and case.target is not None and not case.drops
            if is_known and not _holds_others(step.question.probe):
                yield case
        except (ValueError, LookupError, ArithmeticError, AssertionError, TypeError):
            continue  # the reference refuses it, or lacks parameters


def clearest(cases: Iterator[Case]) -> Case | None:
    """Return the first of the `cases` that rounding does not explain, else the first of all.

    Code that rounds a number to float32 answers every call slightly otherwise, and one that shows
    its mistake much more so.
    """
    first = next(cases, None)
    if first is None or not first.is_slight:
        return first
    return next((one for one in cases if not one.is_slight), first)


def _holds_others(probe: Probe) -> bool:
    """Say whether a part holds other parameters than the reference does: its formula may be right.

    So it is with a new part whose first values are not those that the spec demands.
    """
    try:
        own = probe.part.export()
    except Exception:  # code that a user wrote may raise anything
        return False
    return any(
        name in own and not np.allclose(own[name], wanted, rtol=1e-2, equal_nan=True)
        for name, wanted in probe.parameters.items()
    )


def slightly_wrong(subject: Subject, steps: Sequence[Action]) -> Case | None:
    """Return the first call that only the rounding of a table in single precision would excuse."""
    if subject.choices.position_arithmetic != "float32":
        return None
    return next(wrong_calls(subject, steps, strict=True), None)


def own_cases(
    subject: Subject, component: str, method: str = "", lengths: Lengths = USUAL
) -> Iterator[Case]:
    """Yield calls of `component` that the backend answers wrongly, the simplest first."""
    for other in called(subject, component, method, lengths):
        yield from list(wrong_calls(other, other.trace))[:1]


def called(
    subject: Subject, component: str, method: str = "", lengths: Lengths = USUAL
) -> Iterator[Subject]:
    """Yield the backend after a call of `component`, without an exception, the simplest first."""
    kinds = ("none",) if component in _UNMASKED else ("none", "per-sample", "padding", "causal")
    depths = (1, 2) if component in _STACKS else (1,)
    for layers, mask, settings in product(depths, kinds, _SETTINGS.get(component, ({},))):
        other = Subject(
            subject.backend,
            choices=subject.choices,
            limits=subject.limits,
            precision=subject.precision,
            device=subject.device,
        )
        try:
            _call(other, component, method, mask, layers, lengths, settings)
        except (Absent, BackendError, Violation, ValueError, LookupError):
            continue
        yield other


_STACKS = ("encoder", "decoder", *WHOLE)

_UNMASKED = (
    "causal_layer",
    "language_model",
    "positional_encoding",
    "embedding",
    "layer_norm",
    "rms_norm",
    "rotary",
    "feed_forward",
    "residual",
    "generator",
    "padding_mask",
    "causal_mask",
    "target_mask",
    "sampling",
)

_SETTINGS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "sampling": (
        {"temperature": 0.5},
        {"top_k": 4},
        {"top_p": 0.6},
        {"temperature": 1.6, "top_k": 9, "top_p": 0.7},
    )
}
"""Sizes of the calls of a component whose formula depends on settings, one set for each."""


def _call(
    subject: Subject,
    component: str,
    method: str,
    mask: str,
    layers: int,
    lengths: Lengths = USUAL,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Build the component at sizes of its own, with the `settings` among them, and call it once."""
    limits, choices = subject.limits, subject.choices
    sizes = sizes_within(limits, choices, lengths, layers).but(**(settings or {}))
    rng = np.random.default_rng(lengths.seed)
    drawn = draw_parameters(component, sizes, choices, rng)
    given = {name: cast(one, subject.precision) for name, one in drawn.items()}
    if limits.length is not None and limits.length < lengths.keys:
        raise Absent("too short to tell its axes apart")
    probe = subject.part(component, sizes, parameters=given or None)
    inputs = Inputs(subject, sizes, rng, mask, lengths)
    if method == "decode":
        source, target = inputs.source(), inputs.target()
        probe(
            target, inputs.floats(lengths.batch, lengths.keys, sizes.d_model), source, method=method
        )
    elif method == "encode":
        probe(inputs.source(), method=method)
    else:
        probe(*inputs.of(component))
