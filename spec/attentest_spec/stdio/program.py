"""The backend and the parts of a program that is asked by lines of JSON."""

import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NoReturn, TypeVar

from attentest_spec.choices import Value
from attentest_spec.components import COMPONENTS
from attentest_spec.contract import Gradient, Input, Limits, Output, Unsupported
from attentest_spec.names import require
from attentest_spec.setting import Array
from attentest_spec.sizes import Sizes
from attentest_spec.stdio.conversation import Conversation
from attentest_spec.stdio.pipe import ProgramFailure
from attentest_spec.stdio.tensors import decoded, encoded, encoded_input

CAPABILITIES = ("gradient", "mode")
"""The capabilities of the contract that a program can offer."""

_LIMIT = 60.0

T = TypeVar("T")


class Program:
    """A backend that is a program; it meets :class:`attentest_spec.Backend`."""

    def __init__(self, command: Sequence[str], *, limit: float = _LIMIT) -> None:
        """Start `command`, a program and its arguments, and ask it what it is.

        `limit` is the time one answer may take, in seconds. Raises ProgramFailure, with the
        reason, for a program that cannot be started or does not speak the protocol.
        """
        self._talk = Conversation(command, limit)
        try:
            told = self._talk.described()
            self._talk.agreed(lambda: self._describe(told))
        except BaseException:
            self._talk.close()
            raise

    def _describe(self, told: Mapping[str, Any]) -> None:
        self.name = _as(str, told["name"])
        self.title = _as(str, told["title"])
        self.choices: Mapping[str, Value] = _as(dict, told.get("choices", {}))
        self.limits = _limits(_as(dict, told.get("limits", {})))
        self.components: Collection[str] = _named("component", told["components"], COMPONENTS)
        self._offers = _named("capability", told.get("capabilities", []), CAPABILITIES)

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> "ProgramPart":
        """Build `component` at `sizes`; see :meth:`attentest_spec.Backend.build`.

        A program that has ended is started again.
        """
        if device != "cpu":
            raise Unsupported(f"a program is asked for no device, and {device} is wanted")
        self._talk.wake()
        asked = {"component": component, "sizes": asdict(sizes), "precision": precision}
        told = self._talk.ask("build", **asked)
        handle = self._talk.agreed(lambda: _as(int, told["part"]))
        return ProgramPart(self._talk, handle, self._offers)

    @property
    def limit(self) -> float:
        """The time one answer may take, in seconds; it can be changed between requests."""
        return self._talk.limit

    @limit.setter
    def limit(self, seconds: float) -> None:
        self._talk.limit = seconds

    def close(self) -> None:
        """Ask the program to stop, and end it where it does not."""
        self._talk.close()


class ProgramPart:
    """One component that a program holds; it meets :class:`attentest_spec.Part`."""

    def __init__(self, talk: Conversation, handle: int, capabilities: Collection[str]) -> None:
        self.capabilities = capabilities
        self._talk = talk
        self._handle = handle
        self._start = talk.starts
        weakref.finalize(self, talk.forget, handle, talk.starts).atexit = False

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute the component; see :meth:`attentest_spec.Part.__call__`."""
        given = [encoded_input(one) for one in inputs]
        told = self._ask("call", inputs=given, method=method)
        found = self._talk.agreed(lambda: tuple(_maybe(one) for one in _outputs(told)))
        return found[0] if len(found) == 1 else found

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters; see :meth:`attentest_spec.Part.load`."""
        self._ask("load", parameters={name: encoded(one) for name, one in parameters.items()})

    def export(self) -> dict[str, Array]:
        """Return the parameters; see :meth:`attentest_spec.Part.export`."""
        told = self._ask("export")
        return self._talk.agreed(lambda: _tensors(told["parameters"]))

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull `cotangent` back; see :meth:`attentest_spec.Part.vjp`."""
        self._need("gradient")
        given = [encoded_input(one) for one in inputs]
        told = self._ask("vjp", inputs=given, cotangent=encoded(cotangent))
        return self._talk.agreed(
            lambda: Gradient(
                output=decoded(told["output"]),
                inputs=tuple(_maybe(one) for one in _as(list, told["inputs"])),
                parameters=_tensors(told["parameters"]),
            )
        )

    def train(self) -> None:
        """Switch to training mode."""
        self._need("mode")
        self._ask("train")

    def eval(self) -> None:
        """Switch to evaluation mode."""
        self._need("mode")
        self._ask("eval")

    def reloaded(self) -> NoReturn:
        """Refuse: no state crosses but the parameters."""
        raise Unsupported("a program's state is not asked for")

    def copied(self, how: str) -> NoReturn:
        """Refuse: what a program holds is not copied."""
        raise Unsupported("a program is not asked for copies")

    def moved(self, precision: str = "", device: str = "") -> NoReturn:
        """Refuse: what a program holds is not moved."""
        raise Unsupported("a program is not asked for moves")

    def placed(self, inputs: tuple[Input, ...], device: str) -> NoReturn:
        """Refuse: a program is asked for no device."""
        raise Unsupported("a program is asked for no device")

    def inventory(self) -> NoReturn:
        """Refuse: a program tells its parameters, and not how it holds them."""
        raise Unsupported("a program is not asked for an inventory")

    def global_state(self) -> NoReturn:
        """Refuse: what a program changes in its own process is its own."""
        raise Unsupported("a program's global state is its own")

    def _need(self, capability: str) -> None:
        if capability not in self.capabilities:
            raise Unsupported(f"the program offers no {capability}")

    def _ask(self, do: str, **said: Any) -> dict[str, Any]:
        if self._start != self._talk.starts or not self._talk.alive:
            raise ProgramFailure("the program that held this part has ended")
        return self._talk.ask(do, part=self._handle, **said)


def _as(kind: type[T], value: Any) -> T:
    """Return `value` when it is of `kind`, and no other that Python takes for it."""
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} stands where a {kind.__name__} should")
    return value


def _maybe(told: Any) -> Array | None:
    return None if told is None else decoded(told)


def _outputs(told: Mapping[str, Any]) -> list[Any]:
    found = _as(list, told["outputs"])
    if not found:
        raise ValueError("it holds no output")
    return found


def _tensors(told: Any) -> dict[str, Array]:
    return {name: decoded(one) for name, one in _as(dict, told).items()}


def _named(kind: str, told: Any, known: Collection[str]) -> tuple[str, ...]:
    return tuple(require(kind, _as(str, one), known) for one in _as(list, told))


def _limits(told: Mapping[str, Any]) -> Limits:
    """Return the limits; what is left out is none, as in :class:`attentest_spec.Limits`."""
    plain: dict[str, Any] = {one.name: one.default for one in fields(Limits)}
    for name, value in told.items():
        usual = plain[require("limit", name, plain)]
        if isinstance(usual, tuple):
            plain[name] = _named(name, value, usual)
        elif value is not None or usual is not None:
            plain[name] = _as(int if usual is None else type(usual), value)
    return Limits(**plain)
