"""The recording of every operation of a call in JAX: its program is evaluated step by step.

The steps of a program, its jaxpr, name the lines that they were traced from. What the user's own
compiled functions and loops contain is evaluated step by step, too; a function of JAX is one step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from attentest.analysis.lines.recording import (
    LARGEST,
    Operation,
    Place,
    Swap,
    Value,
    is_users,
    same,
)
from attentest_spec.jax import evaluated_by
from attentest_spec.setting import Array

_STATIC = 3
"""The number of arguments of a program before the static ones."""

Places = tuple[Place, ...]


@dataclass(frozen=True, eq=False)
class _Cell:
    """An array of JAX, and the value that it was recorded as."""

    array: Any
    value: Value | None = None


class JaxRecording:
    """Records the steps of all programs that are called.

    The arguments are those of :class:`~attentest.analysis.lines.recording.Recorder`.
    """

    is_exact = False

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
        self.operations: list[Operation] = []
        self.count = begin
        self.seen_at: list[list[Array]] = []
        self.bound_at: list[list[Array]] = []
        self._puts = puts or {}
        self._swap = swap
        self._keep = keep
        self._look_at = look_at
        self._own = tuple(own)
        self._calls: dict[Any, int] = {}
        self._numbers = 0

    def run(self, action: Callable[[], Any]) -> Any:
        """Return what `action` returns, recorded."""
        with evaluated_by(self._evaluate):
            return action()

    def _evaluate(self, program: Any, *arguments: Any) -> Any:
        traced = program.trace(*arguments)
        given = [self._cell(jnp.asarray(one)) for one in jax.tree.leaves(arguments[:_STATIC])]
        results = self._program(traced.jaxpr, given, ())
        arrays = [one.array for one in results]
        return jax.tree.unflatten(jax.tree.structure(traced.out_info), arrays)

    def _program(self, closed: ClosedJaxpr, given: Sequence[_Cell], outer: Places) -> list[_Cell]:
        """Return the results of a program that is called at the places `outer`."""
        jaxpr: Jaxpr = closed.jaxpr
        known = dict(zip(jaxpr.constvars, map(_Cell, closed.consts), strict=True))
        known |= dict(zip(jaxpr.invars, given, strict=True))

        def cell(atom: Any) -> _Cell:
            return _Cell(atom.val) if isinstance(atom, Literal) else known[atom]

        for step in jaxpr.eqns:
            places = self._places(step, jaxpr, outer)
            results = self._step(step, [cell(one) for one in step.invars], places)
            known |= dict(zip(step.outvars, results, strict=True))
        return [cell(one) for one in jaxpr.outvars]

    def _step(self, step: JaxprEqn, given: list[_Cell], places: Places) -> list[_Cell]:
        words = step.params
        match step.primitive.name:
            case "scan":
                return self._scan(step, given, places)
            case "cond":
                branch = words["branches"][int(given[0].array)]
                return self._program(branch, given[1:], places)
            case "while":
                return self._while(step, given, places)
        inside = words.get("jaxpr", words.get("call_jaxpr"))
        if isinstance(inside, ClosedJaxpr) and self._is_users(inside):
            return self._program(inside, given, places)
        return self._operation(_name(step), places, given, lambda *arrays: _results(step, arrays))

    def _operation(
        self, name: str, places: Places, given: list[_Cell], compute: Callable[..., Sequence[Any]]
    ) -> list[_Cell]:
        """Return the results of one operation, recorded or replaced."""
        number = self.count
        self.count += 1
        swap = self._swap
        if swap is not None and swap.first <= number <= swap.last:
            given = [_swapped(one, swap) for one in given]
        results = compute(*(one.array for one in given))
        if number in self._puts:
            first, *rest = results
            put = np.asarray(self._puts[number]).reshape(first.shape)
            results = [jnp.asarray(put, dtype=first.dtype), *rest]
        if not self._keep:
            return [*map(_Cell, results)]
        inputs = tuple(one.value for one in given if one.value is not None)
        made = Operation(number, name, places, inputs, calls=self._numbered(places))
        if number == self._look_at:
            self.seen_at = [self._known_in(call, inputs) for call in made.calls]
            self.bound_at = self.seen_at  # a program keeps no names
        cells = [self._cell(one, made) for one in results]
        made.outputs += [one.value for one in cells if one.value is not None]
        if made.outputs:
            self.operations.append(made)
        return cells

    def _scan(self, step: JaxprEqn, given: list[_Cell], places: Places) -> list[_Cell]:
        """Return the results of a loop over the first axis of arrays, one round after the other."""
        words = step.params
        at, over = words["num_consts"], words["num_consts"] + words["num_carry"]
        consts, carry, arrays = given[:at], given[at:over], given[over:]
        rounds = range(words["length"])
        order = reversed(rounds) if words["reverse"] else rounds
        made: dict[int, list[_Cell]] = {}
        for number in order:
            here = [self._part(one, number, places) for one in arrays]
            results = self._program(words["jaxpr"], [*consts, *carry, *here], places)
            carry, made[number] = results[: len(carry)], results[len(carry) :]
        columns = zip(*(made[number] for number in rounds), strict=True)
        return [*carry, *(self._joined([*one], places) for one in columns)]

    def _part(self, whole: _Cell, number: int, places: Places) -> _Cell:
        (part,) = self._operation("index", places, [whole], lambda array: [array[number]])
        return part

    def _joined(self, parts: list[_Cell], places: Places) -> _Cell:
        (whole,) = self._operation("stack", places, parts, lambda *one: [jnp.stack(one)])
        return whole

    def _while(self, step: JaxprEqn, given: list[_Cell], places: Places) -> list[_Cell]:
        words = step.params
        of_test, of_body = words["cond_nconsts"], words["body_nconsts"]
        for_test, rest = given[:of_test], given[of_test:]
        for_body, carry = rest[:of_body], rest[of_body:]
        while bool(self._program(words["cond_jaxpr"], [*for_test, *carry], places)[0].array):
            carry = self._program(words["body_jaxpr"], [*for_body, *carry], places)
        return carry

    def _cell(self, array: Any, made: Operation | None = None) -> _Cell:
        values = _array(array) if self._keep else None
        if values is None:
            return _Cell(array)
        self._numbers += 1
        return _Cell(array, Value(self._numbers - 1, values, made))

    def _places(self, step: JaxprEqn, inside: Jaxpr, outer: Places) -> Places:
        """Return the lines of the user's code that led to a step, the innermost first.

        A compiled function is traced once: its steps name the place of the first call, and `outer`
        are those of this one. The number of an instruction counts what JAX calls from there, too:
        these are other steps.
        """
        traceback = step.source_info.traceback
        if traceback is None or not self._keep:
            return ()
        frames = [*zip(*traceback.raw_frames(), strict=True)]
        own = [number for number, (code, _) in enumerate(frames) if self._is_own(code)]
        places = [_place(*frames[number]) for number in own]
        if not places:
            return outer
        inner = hash(tuple(at for _, at in frames[: own[0] + 1]))
        places[0] = places[0]._replace(instruction=inner)
        whole = inside.debug_info.func_filename, inside.debug_info.func_lineno
        functions = [(one.file, one.function) for one in places]
        if outer and whole in functions:
            return (*places[: functions.index(whole) + 1], *outer)
        return tuple(places)

    def _is_own(self, code: CodeType) -> bool:
        return is_users(code.co_filename, self._own)

    def _numbered(self, places: Places) -> tuple[int, ...]:
        """Return a number for each call that an operation is in, by where it is called from."""
        keys = [(one.file, one.function, places[at + 1 :]) for at, one in enumerate(places)]
        return tuple(self._calls.setdefault(one, len(self._calls)) for one in keys)

    def _known_in(self, call: int, inputs: Sequence[Value]) -> list[Array]:
        """Return the values that are in use in a call, so far as its own operations show."""
        own = [one for one in self.operations if one.calls[:1] == (call,)]
        several = [*inputs, *(value for one in own for value in (*one.inputs, *one.outputs))]
        return [one.array for one in several]

    def _is_users(self, program: ClosedJaxpr) -> bool:
        return is_users(program.jaxpr.debug_info.func_filename or "<frozen", self._own)


def _name(step: JaxprEqn) -> str:
    return str(step.params.get("name") or step.primitive.name)


def _results(step: JaxprEqn, arrays: Sequence[Any]) -> Sequence[Any]:
    given = step.primitive.get_bind_params(step.params)
    functions, words = given if isinstance(given, tuple) else ((), given)  # older versions of JAX
    results = step.primitive.bind(*functions, *arrays, **words)
    return list(results) if step.primitive.multiple_results else [results]


def _place(code: CodeType, instruction: int) -> Place:
    return Place(code.co_filename, _line(code, instruction), instruction, code.co_firstlineno)


def _line(code: CodeType, instruction: int) -> int:
    lines = (line for begin, end, line in code.co_lines() if begin <= instruction < end)
    return next(lines, None) or code.co_firstlineno


def _swapped(cell: _Cell, swap: Swap) -> _Cell:
    """Return a cell, with the other value where it holds the one that is taken."""
    array = _array(cell.array) if np.shape(cell.array) == swap.taken.shape else None
    if array is None or not same(array, swap.taken):
        return cell
    return _Cell(jnp.asarray(swap.given, dtype=cell.array.dtype))


def _array(array: Any) -> Array | None:
    """Return a copy of the values, in float64 where they are numbers of half precision."""
    if np.size(array) > LARGEST or jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return None
    half = array.dtype in (jnp.bfloat16, jnp.float16)
    return np.array(array, dtype=np.float64 if half else None)
