"""Lines of mistakes that no value shows: gradients that end, random evaluation, idle modules."""

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attentest.analysis.lines.cases import called, wrong_calls
from attentest.analysis.lines.recording import Place, installed
from attentest.analysis.lines.torch_recording import (
    TorchRecording,
    name_of,
    place_of,
    tensors_in,
)
from attentest.harness.subject import BACKEND, Step, Subject
from attentest.results.verdict import Location
from attentest_spec import Gradient
from attentest_spec.torch import TorchPart


class _Effects(TorchRecording):
    """Records where gradients end and where random numbers are drawn.

    From the operation `go_on` to the end of a block without gradients, these go on. If it does not
    drop, nothing is dropped out.
    """

    def __init__(self, go_on: int = -1, own: Sequence[str] = (), *, drops: bool = True) -> None:
        super().__init__(keep=False, own=own)
        self._drops = drops
        self.ends: list[tuple[int, str, Place]] = []
        self.draws: list[tuple[str, Place]] = []
        self._go_on = go_on

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the function, and see what it does to gradients and to the random state."""
        number, before, named = self.count, torch.get_rng_state(), kwargs or {}
        self.count += 1
        if not self._drops and name_of(func) in _DROPPING:
            args, named = _undropped(name_of(func), args, named)
        result = self._result(number, func, args, named)
        frames, name = self._frames(), name_of(func)
        if not frames or not isinstance(result, Tensor):
            return result
        place = place_of(frames[0])
        if not torch.equal(before, torch.get_rng_state()):
            self.draws.append((name, place))
        given = any(one.requires_grad for one in tensors_in((args, named)))
        if given and result.is_floating_point() and not result.requires_grad:
            self.ends.append((number, name, place))
        return result

    def _result(
        self, number: int, func: Callable[..., Any], args: Sequence[Any], named: dict[str, Any]
    ) -> Any:
        # The end of a block without gradients is a call, too: inside of another, it is undone.
        is_switch = func is torch._C._set_grad_enabled
        if 0 <= self._go_on <= number and not (is_switch or torch.is_grad_enabled()):
            with torch.enable_grad():
                return func(*args, **named)
        result = func(*args, **named)
        given = args[0] if number == self._go_on and args else None
        if isinstance(given, Tensor) and isinstance(result, Tensor) and _same(given, result):
            return given
        return result


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other)


def end_of_gradient(subject: Subject, steps: Sequence[Step]) -> Location | None:
    """Return the first line at which a gradient ends that goes on to the inputs otherwise.

    That it ends there matters where the gradients change once it goes on.
    """
    for step, part in _parts(subject, steps):
        if not isinstance(_answer(step.outcome), Gradient):
            continue
        seen = _Effects()
        before = seen.run(lambda: _answer(step.ask(part)))  # noqa: B023
        for number, name, place in seen.ends:
            changed = _Effects(number).run(lambda: _answer(step.ask(part)))  # noqa: B023
            if _differ(before, changed):
                said = f"the gradient ends at {name}"
                return _location(place, "gradient", "a gradient that goes on", said)
    return None


class _Roots(TorchRecording):
    """Records the first line that takes a root of zero, of which a gradient is asked."""

    def __init__(self) -> None:
        super().__init__(keep=False)
        self.place: Place | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the function, and look at its result."""
        result = func(*args, **(kwargs or {}))
        is_root = name_of(func) in _ROOTS and isinstance(result, Tensor) and result.requires_grad
        if self.place is None and is_root and bool((result == 0).any()):
            frames = self._frames()
            self.place = place_of(frames[0]) if frames else None
        return result


_ROOTS = {"sqrt", "sqrt_", "norm", "vector_norm", "linalg_norm", "linalg_vector_norm", "std"}
"""The functions whose slope at zero is infinite."""


def root_of_zero(subject: Subject, steps: Sequence[Step]) -> Location | None:
    """Return the line that takes the root of zero, where a gradient is not finite."""
    for step, part in _parts(subject, steps):
        found = _answer(step.outcome)
        if not isinstance(found, Gradient) or _is_finite(found):
            continue
        seen = _Roots()
        seen.run(lambda: step.ask(part))  # noqa: B023
        if seen.place is not None:
            said = "a root of zero, whose slope is infinite"
            return _location(seen.place, "gradient", "epsilon inside the root", said)
    return None


def _is_finite(found: Gradient) -> bool:
    given = [one for one in (*found.inputs, *found.parameters.values()) if one is not None]
    return all(bool(np.isfinite(one).all()) for one in given)


class _Filled(TorchRecording):
    """Records the first line whose result holds the number `fill`, which none before it holds."""

    def __init__(self, fill: float) -> None:
        super().__init__(keep=False)
        self.place: Place | None = None
        self._fill = fill

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the function, and look at its result."""
        result = func(*args, **(kwargs or {}))
        if self.place is None and isinstance(result, Tensor) and result.is_floating_point():
            frames = self._frames()
            if frames and bool((result == self._fill).any()) and bool((result != self._fill).any()):
                self.place = place_of(frames[0])
        return result


def weak_fill(subject: Subject, steps: Sequence[Step]) -> Location | None:
    """Return the line that fills masked scores with a number which leaves them a weight."""
    fill = subject.choices.mask_fill
    if not isinstance(fill, float) or np.exp(fill) == 0:  # which leaves none
        return None
    for step, part in _parts(subject, steps):
        seen = _Filled(fill)
        seen.run(lambda: step.ask(part))  # noqa: B023
        if seen.place is not None:
            said = f"masked scores are filled with {fill:g}, which leaves them a weight"
            return _location(seen.place, "mask", "a fill that leaves none, such as -inf", said)
    return None


_DRAWING = ("sampling",)
"""Components whose task is to draw."""


_DROPPING = ("dropout", "scaled_dot_product_attention")
"""Functions that draw for nothing but dropout."""


def draw_in_evaluation(subject: Subject, steps: Sequence[Step]) -> Location | None:
    """Return the first line that draws random numbers in evaluation mode.

    It is confirmed where it applies dropout, and two calls without that give the same.
    """
    for step, part in _parts(subject, steps):
        if step.question is None or step.question.probe.component in _DRAWING or _trains(part):
            continue
        seen = _Effects(own=installed())  # code of packages may be the target
        seen.run(lambda: step.ask(part))  # noqa: B023
        for name, place in seen.draws:
            if name not in _DROPPING:
                said = f"{name} draws random numbers in evaluation mode"
                return _location(place, "evaluation", "no random numbers", said)
            by = "" if name == "dropout" else f", by {name}"
            said = f"dropout is applied in evaluation mode{by}"
            found = _location(place, "evaluation", "no dropout", said)
            one, other = (
                _Effects(drops=False).run(lambda: _output(step.ask(part)))  # noqa: B023
                for _ in range(2)
            )
            return replace(found, confirmed=np.array_equal(one, other))
    return None


def _undropped(name: str, args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the arguments of a function that drops, for a call that drops nothing."""
    at = 1 if name == "dropout" else 4
    own = "p" if name == "dropout" else "dropout_p"
    if len(args) > at:
        return (*args[:at], 0.0, *args[at + 1 :]), named
    return args, {**named, own: 0.0}


def _parts(subject: Subject, steps: Sequence[Step]) -> Iterator[tuple[Step, Any]]:
    """Yield the steps that ended well, each with the part that it asks, in the state of then."""
    parts: dict[int, Any] = {BACKEND: subject.backend}
    for step in steps:
        if step.asked not in parts or isinstance(step.outcome, BaseException):
            continue
        yield step, parts[step.asked]
        outcome = step.ask(parts[step.asked])
        if step.made is not None:
            parts[step.made] = outcome


def _trains(part: Any) -> bool:
    """Say whether a part is in training mode, or has modes and does not say in which it is."""
    if "inventory" in part.capabilities:
        return any(part.inventory()["modes"].values())
    return "mode" in part.capabilities


def _answer(outcome: Any) -> Any:
    return outcome[0] if isinstance(outcome, tuple) and outcome else outcome


def _output(outcome: Any) -> Any:
    """Return the output in an outcome, which may come with gradients."""
    found = _answer(outcome)
    return found.output if isinstance(found, Gradient) else found


def _differ(one: Gradient, other: Gradient) -> bool:
    pairs = [
        *zip(one.inputs, other.inputs, strict=True),
        *((values, other.parameters[name]) for name, values in one.parameters.items()),
    ]
    return any(
        first is not None and second is not None and not np.allclose(first, second)
        for first, second in pairs
    )


def _location(place: Place, step: str, expected: str, computed: str) -> Location:
    code = linecache.getline(place.file, place.line).strip()
    return Location(place.file, place.line, code, step, expected, computed)


class _Arguments(TorchFunctionMode):
    """Keeps the tensors that functions of torch are called with."""

    def __init__(self) -> None:
        super().__init__()
        self.given: dict[int, Tensor] = {}

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Keep the arguments, and run the function."""
        named = kwargs or {}
        self.given |= {id(one): one for one in tensors_in((args, named))}
        return func(*args, **named)


def idle_part(subject: Subject, component: str) -> Location | None:
    """Return the line that makes a module which no call of `component` uses, None for none.

    It is looked for where the numbers are right: wrong ones have lines of their own.
    """
    for other in called(subject, component):
        if any(wrong_calls(other, other.trace)):
            return None
        for step, part in _parts(other, other.trace):
            if step.question is not None and isinstance(part, TorchPart):
                seen = _Arguments()
                with seen:
                    step.ask(part)
                return next(_made(part.module, seen.given), None)
    return None


def _made(whole: nn.Module, used: dict[int, Tensor]) -> Iterator[Location]:
    """Yield the lines that make the outermost modules with parameters that are not among `used`."""
    for name, part in whole.named_children():
        held = [one for one in part.parameters() if one.requires_grad]
        if any(id(one) in used for one in held):
            yield from _made(part, used)
        elif held:
            line = _assigned(type(whole), name)
            if line is not None:
                yield _idle(*line, name)


def _assigned(owner: type, name: str) -> tuple[str, int] | None:
    """Return the file and the line of `self.NAME = ..` in a class or in a base of it."""
    for one in inspect.getmro(owner):
        if one.__module__.partition(".")[0] == "torch" or one is object:
            continue
        try:
            lines, first = inspect.getsourcelines(one)
            file = inspect.getsourcefile(one)
            tree = ast.parse(textwrap.dedent("".join(lines)))
        except (OSError, TypeError, SyntaxError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and file and _assigns(node, name):
                return file, first + node.lineno - 1
    return None


def _assigns(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    own = (one for target in targets for one in ast.walk(target))
    return any(isinstance(one, ast.Attribute) and one.attr == name for one in own)


def _idle(file: str, line: int, name: str) -> Location:
    code = linecache.getline(file, line).strip()
    computed = f"{name} is made here, and no call uses its trained parameters"
    return Location(file, line, code, "parameters", "a call of it", computed)
