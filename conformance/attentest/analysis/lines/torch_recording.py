"""The recording of every torch operation of a call."""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attentest.analysis.lines.recording import (
    LARGEST,
    Operation,
    Place,
    Swap,
    Value,
    is_users,
    same,
)
from attentest_spec.setting import Array
from attentest_spec.torch import to_array


class TorchRecording(TorchFunctionMode):
    """Records the operations inside the block; `puts` replaces the results of some.

    The arguments are those of :class:`~attentest.analysis.lines.recording.Recorder`.
    """

    is_exact = True

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
        self.bound_at: list[list[Array]] = []
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
        self._views: dict[tuple[Any, ...], Value] = {}
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
                args, named = _swapped(swap, tuple(args)), _swapped(swap, dict(named))
            result = func(*args, **named)
            return self._counted(result, args, func)
        given = tensors_in((args, named))
        inputs = [self._value(one) for one in given]
        complete = not any(one.numel() > LARGEST for one in given)
        result = func(*args, **named)
        return self._recorded(func, result, args, inputs, complete=complete)

    def _counted(self, result: Any, args: Sequence[Any], func: Any) -> Any:
        if not _results(result, args, func):
            return result
        self.count += 1
        return self._replaced(self.count - 1, result, args)

    def _recorded(
        self,
        func: Any,
        result: Any,
        args: Sequence[Any],
        inputs: list["Value | None"],
        *,
        complete: bool,
    ) -> Any:
        outputs = _results(result, args, func)
        if not outputs:
            return result
        number = self.count
        self.count += 1
        if number == self._look_at:
            frames = self._frames()
            self.bound_at = [_arrays(frame.f_locals) for frame in frames]
            self.seen_at = [
                [*bound, *self._entered.get(frame, ())]
                for frame, bound in zip(frames, self.bound_at, strict=True)
            ]
        result = self._replaced(number, result, args)
        outputs = _results(result, args, func)
        known = tuple(one for one in inputs if one is not None)
        frames = self._frames()
        places = tuple(place_of(one) for one in frames)
        calls = tuple(self._calls.setdefault(one, len(self._calls)) for one in frames)
        made = Operation(number, name_of(func), places, known, calls=calls, complete=complete)
        for tensor in outputs:
            before = self._values.get(id(tensor))
            array = _array(tensor)
            if array is None:
                continue
            if before is not None and same(before.array, array):
                if made.name == "dropout":
                    before.dropped = made
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
        self._views[_view(tensor)] = value
        return self._known_as(tensor, value)

    def _known_as(self, tensor: Tensor, value: Value) -> Value:
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
            alike = self._views.get(_view(tensor))  # as `Variable(x)` and `nn.Parameter(x)` are
            if alike is not None and same(alike.array, array):
                return self._known_as(tensor, alike)
            return self._add(tensor, array, None)
        if same(known.array, array):
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

    def run(self, action: Callable[[], Any]) -> Any:
        """Return what `action` returns, recorded."""
        before = sys.getprofile()
        if self._looks:
            sys.setprofile(self._enter)
        try:
            with self:
                return action()
        finally:
            if self._looks:
                sys.setprofile(before)
            self._calls.clear()  # lets go of the frames, and of the local variables in them
            self._entered.clear()

    @property
    def _looks(self) -> bool:
        """Whether local variables are looked at."""
        return self._look_at >= 0

    def _enter(self, frame: FrameType, event: str, _: Any) -> None:
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


_RUN = TorchRecording.run.__code__


def _swapped(swap: Swap, value: Any) -> Any:
    """Return `value` with the tensors in it swapped, whatever it is nested in."""
    if isinstance(value, Tensor):
        array = _array(value) if value.shape == swap.taken.shape[: value.ndim] else None
        taken = array is not None and same(array, swap.taken)
        return _new(swap.given, value) if taken else value
    if type(value) in (tuple, list):
        return type(value)(_swapped(swap, one) for one in value)
    if type(value) is dict:
        return {name: _swapped(swap, one) for name, one in value.items()}
    return value


def _new(put: Array, target: Tensor) -> Tensor:
    """Return `put` as a tensor like `target`, of its own shape."""
    made = torch.from_numpy(np.array(put))
    if target.is_complex():
        made = torch.view_as_complex(made.to(target.real.dtype).contiguous())
    return made.to(device=target.device, dtype=target.dtype)


def line_of_caller() -> Place | None:
    """Return the innermost line of the user's code that is running, None for none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and place_of(frame)


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
    """Return a copy of the values, in float64 where they are numbers of half precision.

    Complex numbers have a last axis of two: real and imaginary part.
    """
    try:
        if tensor.numel() > LARGEST or tensor.is_meta:
            return None
        plain = tensor.detach()
        if plain.is_complex():
            plain = torch.view_as_real(plain.resolve_conj())
        if plain.dtype in (torch.bfloat16, torch.float16):
            plain = plain.double()
        return np.array(to_array(plain))
    except (RuntimeError, TypeError, NotImplementedError):
        return None  # a tensor without memory of its own, as inside vmap


def _view(tensor: Tensor) -> tuple[Any, ...]:
    """Return what all tensors that are one have in common, whatever made them."""
    try:
        place = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    except (RuntimeError, NotImplementedError):
        return (id(tensor),)
    return _storage(tensor), tensor.dtype, *place


def _storage(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return id(tensor)
