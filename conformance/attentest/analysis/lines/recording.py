"""The recording of every torch operation of a call: its line, its inputs, and its values.

Operations are numbered in the order in which they run, so that another run of the same code can
put another value in the place of one of them.
"""

import inspect
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import attentest_spec
from attentest_spec.setting import Array
from attentest_spec.torch import to_array


class Place(NamedTuple):
    """A line of code; `instruction` tells calls in one line apart, `function` is its first line."""

    file: str
    line: int
    instruction: int
    function: int


LARGEST = 200_000
"""The number of entries up to which values are kept: examples are small."""


@dataclass(eq=False)
class Value:
    """A value of a tensor at one moment; `made` is the operation that made it, None for a leaf."""

    number: int
    array: Array
    made: "Operation | None" = None


@dataclass(eq=False)
class Operation:
    """One call of a torch function with a tensor as its result.

    `places` are the lines of the user's code that led to it, the innermost first, and `calls` the
    numbers of the calls of functions that these are in.
    """

    number: int
    name: str
    places: tuple[Place, ...]
    inputs: tuple[Value, ...]
    outputs: list[Value] = field(default_factory=list)
    in_place: bool = False
    calls: tuple[int, ...] = ()

    @property
    def place(self) -> Place | None:
        """The innermost line of the user's code, None where there is none."""
        return self.places[0] if self.places else None


@dataclass(frozen=True, eq=False)
class Swap:
    """Another value for an input: operations `first` to `last` take `given` where it is `taken`."""

    first: int
    last: int
    taken: Array
    given: Array

    def applied(self, value: Any) -> Any:
        """Return `value` with the tensors in it swapped, whatever it is nested in."""
        if isinstance(value, Tensor):
            array = _array(value) if value.shape == self.taken.shape else None
            same = array is not None and _same(array, self.taken)
            return _new(self.given, value) if same else value
        if type(value) in (tuple, list):
            return type(value)(map(self.applied, value))
        if type(value) is dict:
            return {name: self.applied(one) for name, one in value.items()}
        return value


class Recording(TorchFunctionMode):
    """Records the operations inside the block; `puts` replaces the results of some.

    `puts` maps the number of an operation to the value of its result, and `swap` replaces an input
    of some operations. Where `keep` is False, operations are counted and replaced, and not
    recorded. `look_at` is the number of an operation at which the local variables and arguments of
    the user's functions are looked at. `begin` is the number of the first operation; `own` are
    folders whose code counts as the user's although it is installed.
    """

    def __init__(
        self,
        puts: Mapping[int, Array] | None = None,
        *,
        keep: bool = True,
        look_at: int = -1,
        begin: int = 0,
        own: Sequence[str] = (),
        swap: Swap | None = None,
    ) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self.count = begin
        self.seen_at: list[list[Array]] = []
        self._puts = puts or {}
        self._swap = swap
        self._calls: dict[FrameType, int] = {}
        self._entered: dict[FrameType, list[Array]] = {}
        self._keep = keep
        self._pauses = False
        self._look_at = look_at
        self._own = tuple(own)
        self._values: dict[int, Value] = {}
        self._tensors: list[Tensor] = []
        self._writes: dict[int, Operation] = {}
        self._numbers = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        """Run the function, and record it where its result is a tensor."""
        named = kwargs or {}
        if self._pauses:
            return func(*args, **named)
        if not self._keep:
            swap = self._swap
            if swap is not None and swap.first <= self.count <= swap.last:
                args, named = swap.applied(tuple(args)), swap.applied(dict(named))
            result = func(*args, **named)
            return self._counted(result, args, func)
        inputs = [self._value(one) for one in tensors_in((args, named))]
        result = func(*args, **named)
        return self._recorded(func, result, args, inputs)

    def _counted(self, result: Any, args: Sequence[Any], func: Any) -> Any:
        if not _results(result, args, func):
            return result
        self.count += 1
        return self._replaced(self.count - 1, result, args)

    def _recorded(
        self, func: Any, result: Any, args: Sequence[Any], inputs: list["Value | None"]
    ) -> Any:
        outputs = _results(result, args, func)
        if not outputs:
            return result
        number = self.count
        self.count += 1
        if number == self._look_at:
            self.seen_at = [
                [*_arrays(frame.f_locals), *self._entered.get(frame, ())]
                for frame in self._frames()
            ]
        result = self._replaced(number, result, args)
        outputs = _results(result, args, func)
        known = tuple(one for one in inputs if one is not None)
        frames = self._frames()
        places = tuple(place_of(one) for one in frames)
        calls = tuple(self._calls.setdefault(one, len(self._calls)) for one in frames)
        made = Operation(number, name_of(func), places, known, calls=calls)
        for tensor in outputs:
            before = self._values.get(id(tensor))
            array = _array(tensor)
            if array is None:
                continue
            if before is not None and _same(before.array, array):
                continue  # the tensor itself is returned, as by `contiguous`
            made.in_place = made.in_place or before is not None
            made.outputs.append(self._add(tensor, array, made))
            if made.in_place:
                self._writes[_storage(tensor)] = made
        if made.outputs:
            self.operations.append(made)
        return result

    def _replaced(self, number: int, result: Any, args: Sequence[Any]) -> Any:
        if number not in self._puts:
            return result
        put = self._puts[number]
        target = result if isinstance(result, Tensor) else None
        if target is None and isinstance(result, tuple):
            first = next(one for one in result if isinstance(one, Tensor))
            new = _new(put, first)
            return tuple(new if one is first else one for one in result)
        if target is None:
            target = args[0]
        new = _new(put, target)
        if any(one is target for one in tensors_in(args)):
            with torch.no_grad():
                target.copy_(new)
            return result
        return new

    def _add(self, tensor: Tensor, array: Array, made: "Operation | None") -> Value:
        value = Value(self._numbers, array, made)
        self._numbers += 1
        self._values[id(tensor)] = value
        self._tensors.append(tensor)  # alive, so that no other tensor gets its id
        return value

    def _value(self, tensor: Tensor) -> Value | None:
        """Return the value that `tensor` has now, a new one where it has changed."""
        known = self._values.get(id(tensor))
        array = _array(tensor)
        if array is None:
            return None
        if known is None:
            return self._add(tensor, array, None)
        if _same(known.array, array):
            return known
        writer = self._writes.get(_storage(tensor))
        if writer is None:
            return self._add(tensor, array, None)
        alias = Operation(
            writer.number, "write", writer.places, (known, *writer.outputs), in_place=True
        )
        value = self._add(tensor, array, alias)
        alias.outputs.append(value)
        self.operations.append(alias)
        return value

    def forget_calls(self) -> None:
        """Let go of the frames, and of the local variables in them."""
        self._calls.clear()
        self._entered.clear()

    @property
    def looks(self) -> bool:
        """Whether local variables are looked at."""
        return self._look_at >= 0

    def entered(self, frame: FrameType, event: str, _: Any) -> None:
        """Keep the arguments of a call of the user's functions: a name may be bound again."""
        if event == "call" and is_users(frame.f_code.co_filename, self._own):
            self._pauses = True
            self._entered[frame] = _arrays(frame.f_locals)
            self._pauses = False

    def _frames(self) -> list[FrameType]:
        """Return the frames of the user's code, the innermost first."""
        found = []
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code is not _RUN:
            if is_users(frame.f_code.co_filename, self._own):
                found.append(frame)
            frame = frame.f_back
        return found


def _new(put: Array, target: Tensor) -> Tensor:
    """Return `put` as a tensor like `target`, of its own shape."""
    return torch.from_numpy(np.array(put)).to(device=target.device, dtype=target.dtype)


def record(action: Callable[[], Any], recording: Recording) -> Any:
    """Return what `action` returns, run under `recording`."""
    before = sys.getprofile()
    if recording.looks:
        sys.setprofile(recording.entered)
    try:
        with recording:
            return action()
    finally:
        if recording.looks:
            sys.setprofile(before)
        recording.forget_calls()


_RUN = record.__code__


_SUITE = Path(__file__).parents[2]


@cache
def _tools() -> tuple[str, ...]:
    """Return the folders of torch, the suite and the standard library."""
    homes = (Path(inspect.getfile(one)).parent for one in (torch, attentest_spec, np))
    return _folders(str(_SUITE), *map(str, homes), str(Path(inspect.getfile(os)).parent))


@cache
def installed() -> tuple[str, ...]:
    """Return the folders that packages are installed in."""
    places = (sysconfig.get_path(one) for one in ("purelib", "platlib"))
    return _folders(*places, site.getusersitepackages())


def _folders(*places: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.join(one, "") for one in places))


def is_users(file: str, own: Sequence[str] = ()) -> bool:
    """Say whether `file` is code of the user: not of torch, the suite, or what is installed."""
    return _is_users(file, tuple(own))


@cache
def _is_users(file: str, own: tuple[str, ...]) -> bool:
    if file.startswith(installed()):
        return file.startswith(own) and not file.startswith(_tools()[:-1])
    return not file.startswith((*_tools(), "<frozen", "<string", "<__array"))


def package_of(recording: "Recording") -> tuple[str, ...]:
    """Return the folder of the installed package that the recorded call begins in, () for none.

    The recording counts all installed code as the user's.
    """
    files = (one.places[-1].file for one in recording.operations if one.places)
    for file in files:
        home = next((one for one in installed() if file.startswith(one)), None)
        if home is not None:
            return (home + file.removeprefix(home).split(os.sep)[0],)
    return ()


def place_of(frame: FrameType) -> Place:
    """Return the line that a frame is at."""
    code = frame.f_code
    return Place(code.co_filename, frame.f_lineno, frame.f_lasti, code.co_firstlineno)


def _arrays(variables: Mapping[str, Any]) -> list[Array]:
    """Return the values of the tensors among local variables."""
    arrays = (_array(tensor) for value in list(variables.values()) for tensor in tensors_in(value))
    return [one for one in arrays if one is not None]


def tensors_in(value: Any) -> list[Tensor]:
    """Return the tensors in `value`, whatever it is nested in."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [one for inner in value for one in tensors_in(inner)]
    if isinstance(value, dict):
        return [one for inner in value.values() for one in tensors_in(inner)]
    return []


def _results(result: Any, args: Sequence[Any], func: Any) -> list[Tensor]:
    """Return the tensors that a call made or wrote into."""
    if result is None and name_of(func) == "__setitem__":
        return [args[0]]
    return tensors_in(result) if isinstance(result, (Tensor, tuple, list)) else []


def name_of(func: Any) -> str:
    """Return the name of a torch function; of an attribute, its own."""
    name = getattr(func, "__name__", "")
    if name == "__get__":
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return str(name)


def _array(tensor: Tensor) -> Array | None:
    """Return a copy of the values, in float64 where they are numbers of half precision."""
    try:
        if tensor.numel() > LARGEST or tensor.is_meta:
            return None
        plain = tensor.detach()
        if plain.dtype in (torch.bfloat16, torch.float16):
            plain = plain.double()
        return np.array(to_array(plain))
    except (RuntimeError, TypeError, NotImplementedError):
        return None  # a tensor without memory of its own, as inside vmap


def _same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(tensor)
