"""The backend as checks use it: guarded, with copies of inputs, recorded.

A check never touches a backend directly. Inputs cross as copies and are verified unchanged,
whatever the backend raises becomes a :class:`BackendError`, and every step is recorded, so that a
violation can be reproduced without the suite.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np

from attentest.harness.copies import copy_arrays, copy_with_layout
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.process_state import restore_changes
from attentest.harness.reproduction import Build, Call, Load, Pull, Record, request
from attentest.results.text import line
from attentest_spec import Backend, Choices, Gradient, Limits, Part, Setting, Sizes, Unsupported
from attentest_spec.components import COMPONENTS
from attentest_spec.contract import Input
from attentest_spec.oracles import METHODS, ORACLES
from attentest_spec.precision import dtype
from attentest_spec.setting import Array, Displace, Floats, Normalise

T = TypeVar("T")

BACKEND = -1
"""The number of the backend itself."""


class Answer(NamedTuple):
    """The arrays that a call returns.

    The output has the shape that the contract states for the component, the weights of attention
    are (B, H, Q, K), None where there are none.
    """

    output: Annotated[Array, "*shape"]
    weights: Annotated[Array, "B H Q K"] | None = None

    @classmethod
    def of(cls, result: Any) -> "Answer":
        """Return the `result` of a call, the output alone or a tuple that starts with it."""
        return cls(*result[:2]) if isinstance(result, tuple) else cls(result)


@dataclass(frozen=True)
class Question:
    """A call of a component: the probe as it was then, with its parameters, and the inputs."""

    probe: "Probe"
    inputs: tuple[Input, ...]
    method: str = ""


@dataclass(frozen=True)
class Step:
    """One step of an example: the part that was asked, the action, its outcome, the part it made.

    `question` is set for calls alone.
    """

    asked: int
    ask: Callable[[Any], Any]
    outcome: Any
    made: int | None = None
    question: Question | None = None


@contextmanager
def guarded(doing: str, changed: set[str] | None = None) -> Iterator[None]:
    """Turn whatever a backend raises while `doing` something into a :class:`BackendError`.

    Global state of the process that it changes is restored, and its name added to `changed`.
    """
    try:
        with restore_changes(set() if changed is None else changed):
            yield
    except KeyboardInterrupt:
        raise
    except Unsupported as refusal:
        raise Absent(f"{doing}: {refusal}") from refusal
    except BaseException as failure:  # a backend may raise SystemExit or a class of its own
        raise BackendError(doing, failure) from failure


class Subject:
    """One backend under test."""

    def __init__(
        self,
        backend: Backend,
        *,
        choices: Choices | None = None,
        limits: Limits | None = None,
        precision: str = "float64",
        device: str = "cpu",
        watch: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Test `backend` under `choices` and `limits` (its declared ones by default).

        `watch` makes the context in which its parts are asked.
        """
        self.backend = backend
        self.name = line(str(backend.name))
        self.declared: Mapping[str, Any] = dict(backend.choices)
        self.choices = Choices.of(self.declared) if choices is None else choices
        self.limits: Limits = backend.limits if limits is None else limits
        self.precision = precision
        self.device = device
        self.watch = watch
        self.record = Record(self.name, getattr(backend, "reproduction_script", None))
        self.trace: list[Step] = []
        self.failing: list[Step] = []
        self.needs: tuple[str, ...] = ()
        self.notes: list[str] = []
        self.changed: set[str] = set()
        self.budget: float | None = None
        self.parts = 0
        self.written: dict[str, str] = {}

    def begin(self) -> None:
        """Begin an example: clear the record and the trace of the last one."""
        self.record.clear()
        self.trace = []
        self.parts = 0
        self.written = {}

    def end(self, excused: Container[str] = ()) -> None:
        """End an example: a part that wrote into an input is a violation where all else holds too.

        What a call returns is judged first: one mistake does not hide another. The components that
        are `excused` have a clause of their own for what they write.
        """
        for component, written in self.written.items():
            if component not in excused:
                raise Violation(written)

    def provides(self, component: str) -> bool:
        """Return whether the backend provides `component`."""
        return component in self.backend.components

    def require(self, component: str) -> None:
        """End as absent unless the backend provides `component`."""
        if not self.provides(component):
            raise Absent(f"{self.name} provides no {component}")

    def require_precision(self, precision: str) -> None:
        """End as absent unless the backend supports `precision`."""
        if precision not in self.limits.precisions:
            raise Absent(f"{self.name} does not compute in {precision}")

    def note(self, text: str) -> None:
        """Add a note to the verdict, once."""
        if text not in self.notes:
            self.notes.append(text)

    def seed(self, number: int) -> None:
        """Set the seed that constructors draw by; absent where the backend has none to set."""
        setting = getattr(self.backend, "seed", None)
        if setting is None:
            raise Absent(f"{self.name} has no seed that is set from outside")
        setting(number)

    def part(
        self,
        component: str,
        sizes: Sizes,
        *,
        parameters: Mapping[str, Floats] | None = None,
        precision: str = "",
    ) -> "Probe":
        """Build `component`, load `parameters` where given, and return it ready to be called."""
        self.require(component)
        wanted = precision or self.precision
        self.require_precision(wanted)
        device = "cpu" if COMPONENTS[component].on_host else self.device
        self.record.add(Build(self.parts, component, sizes, wanted, device))
        number, built = self.made(
            f"building {component}",
            BACKEND,
            self.backend,
            lambda backend: backend.build(component, sizes, precision=wanted, device=device),
        )
        missing = [need for need in self.needs if need not in built.capabilities]
        if missing:
            raise Absent(f"the {component} of {self.name} offers no {', '.join(missing)}")
        self.record.attach(built)
        probe = Probe(self, component, sizes, built, wanted, number)
        if parameters is not None:
            probe.load(parameters)
        return probe

    def ask(
        self,
        doing: str,
        asked: int,
        of: Any,
        action: Callable[[Any], T],
        *,
        made: int | None = None,
        question: Question | None = None,
    ) -> T:
        """Run an action on a part (or the backend), guarded, and record its outcome."""
        outcome: Any = None
        watch = self.watch if made is None else nullcontext
        try:
            with guarded(doing, self.changed), watch():
                result = action(of)
            outcome = copy_arrays(result)
        except BackendError as error:
            outcome = error.cause
            raise
        except Absent as absence:
            outcome = absence.__cause__
            raise
        finally:
            self.trace.append(Step(asked, action, outcome, made, question))
        return result

    def made(
        self, doing: str, asked: int, of: Any, action: Callable[[Any], Part]
    ) -> tuple[int, Part]:
        """Run an action that makes a part, and return the number of the part and the part."""
        number = self.parts
        self.parts += 1
        return number, self.ask(doing, asked, of, action, made=number)

    def used(self, share: float) -> None:
        """Record the largest share of a tolerance that was used."""
        if np.isfinite(share):
            self.budget = max(share, self.budget or 0.0)


class Probe:
    """One built part, together with the answers of the reference."""

    def __init__(
        self,
        subject: Subject,
        component: str,
        sizes: Sizes,
        part: Part,
        precision: str,
        number: int,
    ) -> None:
        self.subject = subject
        self.component = component
        self.sizes = sizes
        self.part = part
        self.precision = precision
        self.number = number
        self.parameters: dict[str, Floats] = {}
        self.normalise: Normalise | None = None
        self.displace: Displace | None = None

    def load(self, parameters: Mapping[str, Floats]) -> None:
        """Load canonical `parameters`; the reference uses the same."""
        self.parameters = dict(parameters)
        given = {name: values.astype(dtype(self.precision)) for name, values in parameters.items()}
        self.subject.record.add(Load(self.number, given))
        doing = f"loading the parameters of {self.component}"
        self._ask(doing, lambda part: part.load(given))

    def __call__(self, *inputs: Input, method: str = "") -> Answer:
        """Return what the backend computes: the output, and weights where there are some."""
        return Answer.of(self.results(*inputs, method=method))

    def results(self, *inputs: Input, method: str = "") -> tuple[Any, ...]:
        """Return all that the backend computes, arrays of any shape in the contract's order."""
        doing = f"calling {self.component}{'.' + method if method else ''}"
        asked = self._inputs(inputs)
        self.subject.record.add(Call(self.number, asked, method))

        def call(part: Part) -> tuple[Any, tuple[Input, ...]]:
            given = self._inputs(inputs)
            return part(*given, method=method), given

        result, given = self._ask(doing, call, Question(copy(self), inputs, method))
        arrays = _arrays(doing, result)
        self._unchanged(given, asked)
        return arrays

    def output(self, *inputs: Input, method: str = "") -> Annotated[Array, "*shape"]:
        """Return the output of a call, without the weights; shapes as in the contract."""
        return self(*inputs, method=method).output

    def weights(self, *inputs: Input) -> Annotated[Array, "*shape"]:
        """Return the attention weights (B, H, Q, K); absent where the backend returns none."""
        weights = self(*inputs).weights
        if weights is None:
            raise Absent(f"the {self.component} of {self.subject.name} returns no weights")
        return weights

    def expected(self, *inputs: Input, method: str = "", choices: Choices | None = None) -> Answer:
        """Return the answer of the reference, under the backend's choices by default."""
        given = Setting(
            self.sizes,
            choices or self.subject.choices,
            self.parameters,
            normalise=self.normalise,
            displace=self.displace,
        )
        oracle = METHODS[method] if method else ORACLES[self.component]
        return Answer.of(oracle(given, *inputs))

    def expected_results(self, *inputs: Input) -> tuple[Annotated[Array, "..."], ...]:
        """Return all that the reference computes, arrays of any shape in the contract's order."""
        given = Setting(self.sizes, self.subject.choices, self.parameters)
        found = ORACLES[self.component](given, *inputs)
        return found if isinstance(found, tuple) else (found,)

    def vjp(self, inputs: tuple[Input, ...], cotangent: Annotated[Floats, "*shape"]) -> Gradient:
        """Pull `cotangent`, which has the shape of the output, back through the backend."""
        weights = cotangent.astype(dtype(self.precision))
        asked = self._inputs(inputs)
        self.subject.record.add(Pull(self.number, asked, weights.copy()))

        def pull(part: Part) -> tuple[Gradient, tuple[Input, ...]]:
            given = self._inputs(inputs)
            return part.vjp(given, weights.copy()), given

        gradient, given = self._ask(f"differentiating {self.component}", pull)
        self._unchanged(given, asked)
        return gradient

    def do(self, doing: str, action: Callable[[Part], T]) -> T:
        """Use a capability of the part, such as `lambda part: part.export()`."""
        self.subject.record.add(request(self.number, doing, action))
        return self._ask(doing, action)

    def train(self) -> None:
        """Switch the part to training mode."""
        self.do("switching to training mode", lambda part: part.train())

    def eval(self) -> None:
        """Switch the part to evaluation mode."""
        self.do("switching to evaluation mode", lambda part: part.eval())

    def become(self, doing: str, action: Callable[[Part], Part], precision: str = "") -> "Probe":
        """Return a probe of the part that `action` makes out of this one (a copy, a move)."""
        self.subject.record.add(request(self.number, doing, action, made=self.subject.parts))
        number, made = self.subject.made(doing, self.number, self.part, action)
        other = Probe(
            self.subject, self.component, self.sizes, made, precision or self.precision, number
        )
        other.parameters = self.parameters
        return other

    def _ask(self, doing: str, action: Callable[[Part], T], question: Question | None = None) -> T:
        return self.subject.ask(doing, self.number, self.part, action, question=question)

    def _inputs(self, inputs: tuple[Input, ...]) -> tuple[Input, ...]:
        return tuple(self._input(value) for value in inputs)

    def _input(self, value: Input) -> Input:
        if not isinstance(value, np.ndarray):
            return value
        wanted = dtype(self.precision) if value.dtype == np.float64 else value.dtype
        return copy_with_layout(value, wanted)

    def _unchanged(self, given: tuple[Input, ...], asked: tuple[Input, ...]) -> None:
        for number, (now, then) in enumerate(zip(given, asked, strict=True)):
            if isinstance(now, np.ndarray) and not _same(now, then):
                written = f"{self.component} wrote into its input number {number}."
                self.subject.written.setdefault(self.component, written)


def _same(now: Array, then: Any) -> bool:
    """Return whether two arrays hold the same numbers; the bytes are compared first, as faster."""
    kind = now.dtype == then.dtype and now.shape == then.shape
    return (kind and now.tobytes() == then.tobytes()) or np.array_equal(now, then, equal_nan=True)


def _arrays(doing: str, result: Any) -> tuple[Any, ...]:
    """Return `result` as a tuple; raise a Violation where it is not made of arrays."""
    arrays = result if isinstance(result, tuple) else (result,)
    for array in arrays:
        if array is not None and not isinstance(array, np.ndarray):
            raise Violation(f"{doing} returned a {type(array).__name__}, not an array.")
    if not arrays or arrays[0] is None:
        raise Violation(f"{doing} returned nothing.")
    return arrays
