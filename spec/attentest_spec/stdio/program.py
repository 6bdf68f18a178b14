"""A program as a backend of the contract, and its parts."""

import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any, NoReturn, TypeVar

from attentest_spec.choices import Value
from attentest_spec.components import COMPONENTS
from attentest_spec.contract import (
    MASK_KINDS,
    PADDED_INPUTS,
    Gradient,
    Input,
    Limits,
    Output,
    Unsupported,
)
from attentest_spec.names import require
from attentest_spec.setting import Array
from attentest_spec.sizes import Sizes
from attentest_spec.stdio.conversation import Conversation
from attentest_spec.stdio.pipe import ProgramFailure
from attentest_spec.stdio.tensors import decode, encode, encode_input

CAPABILITIES = ("gradient", "mode")
"""The capabilities of the contract that a program can have."""

_LIMIT = 60.0

T = TypeVar("T")


class Program:
    """A backend that is a program; it meets :class:`attentest_spec.Backend`."""

    def __init__(self, command: Sequence[str], *, limit: float = _LIMIT) -> None:
        """Start `command`, a program and its arguments, and request its description.

        `limit` is the time one answer may take, in seconds. Raises ProgramFailure, with the
        reason, for a program that cannot be started or does not speak the protocol.
        """
        self._conversation = Conversation(command, limit)
        try:
            answer = self._conversation.describe()
            self._conversation.read(lambda: self._describe(answer))
        except BaseException:
            self._conversation.close()
            raise

    def _describe(self, answer: Mapping[str, Any]) -> None:
        self.name = _as(str, answer["name"])
        self.title = _as(str, answer["title"])
        self.choices: Mapping[str, Value] = _as(dict, answer.get("choices", {}))
        self.limits = _limits(_as(dict, answer.get("limits", {})))
        self.components: Collection[str] = _require_all(
            "component", answer["components"], COMPONENTS
        )
        self._capabilities = _require_all(
            "capability", answer.get("capabilities", []), CAPABILITIES
        )

    def build(
        self, component: str, sizes: Sizes, *, precision: str = "float64", device: str = "cpu"
    ) -> "ProgramPart":
        """Build `component` at `sizes`; see :meth:`attentest_spec.Backend.build`.

        A program that has ended is started again.
        """
        if device != "cpu":
            raise Unsupported(f"a program runs on its own device, and {device} was requested")
        self._conversation.start()
        asked = {"component": component, "sizes": asdict(sizes), "precision": precision}
        answer = self._conversation.ask("build", **asked)
        handle = self._conversation.read(lambda: _as(int, answer["part"]))
        return ProgramPart(self._conversation, handle, self._capabilities)

    @property
    def limit(self) -> float:
        """The time one answer may take, in seconds; it can be changed between requests."""
        return self._conversation.limit

    @limit.setter
    def limit(self, seconds: float) -> None:
        self._conversation.limit = seconds

    def close(self) -> None:
        """Request the program to stop, and kill it if it does not."""
        self._conversation.close()


class ProgramPart:
    """One component that a program holds; it meets :class:`attentest_spec.Part`."""

    def __init__(
        self, conversation: Conversation, handle: int, capabilities: Collection[str]
    ) -> None:
        self.capabilities = capabilities
        self._conversation = conversation
        self._handle = handle
        self._start = conversation.starts
        weakref.finalize(self, conversation.forget, handle, conversation.starts).atexit = False

    def __call__(self, *inputs: Input, method: str = "") -> Output:
        """Compute the component; see :meth:`attentest_spec.Part.__call__`."""
        given = [encode_input(one) for one in inputs]
        answer = self._ask("call", inputs=given, method=method)
        found = self._conversation.read(
            lambda: tuple(_decode_output(one) for one in _outputs(answer))
        )
        return found[0] if len(found) == 1 else found

    def load(self, parameters: Mapping[str, Array]) -> None:
        """Set the parameters; see :meth:`attentest_spec.Part.load`."""
        self._ask("load", parameters={name: encode(one) for name, one in parameters.items()})

    def export(self) -> dict[str, Array]:
        """Return the parameters; see :meth:`attentest_spec.Part.export`."""
        answer = self._ask("export")
        return self._conversation.read(lambda: _decode_all(answer["parameters"]))

    def vjp(self, inputs: tuple[Input, ...], cotangent: Array) -> Gradient:
        """Pull `cotangent` back; see :meth:`attentest_spec.Part.vjp`."""
        self._need("gradient")
        given = [encode_input(one) for one in inputs]
        answer = self._ask("vjp", inputs=given, cotangent=encode(cotangent))
        return self._conversation.read(
            lambda: Gradient(
                output=decode(answer["output"]),
                inputs=tuple(_decode_output(one) for one in _as(list, answer["inputs"])),
                parameters=_decode_all(answer["parameters"]),
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
        """Refuse: the protocol transfers parameters alone."""
        raise Unsupported("the protocol has no request for the state")

    def copied(self, how: str) -> NoReturn:
        """Refuse: the protocol has no copies."""
        raise Unsupported("the protocol has no request for copies")

    def moved(self, precision: str = "", device: str = "") -> NoReturn:
        """Refuse: the protocol has no moves."""
        raise Unsupported("the protocol has no request for moves")

    def placed(self, inputs: tuple[Input, ...], device: str) -> NoReturn:
        """Refuse: the protocol has no devices."""
        raise Unsupported("the protocol has no request for a device")

    def inventory(self) -> NoReturn:
        """Refuse: the protocol does not say how a program holds its parameters."""
        raise Unsupported("the protocol has no request for an inventory")

    def global_state(self) -> NoReturn:
        """Refuse: a program changes the state of its own process alone."""
        raise Unsupported("the protocol has no request for the global state")

    def _need(self, capability: str) -> None:
        if capability not in self.capabilities:
            raise Unsupported(f"the program does not have the capability {capability}")

    def _ask(self, do: str, **fields: Any) -> dict[str, Any]:
        if self._start != self._conversation.starts or not self._conversation.alive:
            raise ProgramFailure("the program that held this part has ended")
        return self._conversation.ask(do, part=self._handle, **fields)


def _as(kind: type[T], value: Any) -> T:
    """Return `value` if it is exactly of the type `kind`; raise TypeError if it is not."""
    if type(value) is not kind:
        raise TypeError(f"{value!r:.60} is not of the type {kind.__name__}")
    return value


def _decode_output(answer: Any) -> Array | None:
    return None if answer is None else decode(answer)


def _outputs(answer: Mapping[str, Any]) -> list[Any]:
    found = _as(list, answer["outputs"])
    if not found:
        raise ValueError("it has no output")
    return found


def _decode_all(answer: Any) -> dict[str, Array]:
    return {name: decode(one) for name, one in _as(dict, answer).items()}


def _require_all(kind: str, answer: Any, known: Collection[str]) -> tuple[str, ...]:
    return tuple(require(kind, _as(str, one), known) for one in _as(list, answer))


def _limits(answer: Mapping[str, Any]) -> Limits:
    """Return the limits; what is left out has the default of :class:`attentest_spec.Limits`."""
    plain: dict[str, Any] = {one.name: one.default for one in fields(Limits)}
    for name, value in answer.items():
        usual = plain[require("limit", name, plain)]
        if name == "right_padded":
            plain[name] = _require_all(name, value, PADDED_INPUTS)
        elif name == "memory_masks":
            plain[name] = None if value is None else _require_all(name, value, MASK_KINDS)
        elif isinstance(usual, tuple):
            plain[name] = _require_all(name, value, usual)
        elif name == "smoothing" and type(value) is int:  # 0 is a rate, too
            plain[name] = float(value)
        elif name == "smoothing":
            plain[name] = None if value is None else _as(float, value)
        elif value is not None or usual is not None:
            plain[name] = _as(int if usual is None else type(usual), value)
    return Limits(**plain)
