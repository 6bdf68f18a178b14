"""The error of a schedule, and the line that it comes from."""

import ast
import linecache
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeGuard

from attentest.analysis.lines.explain import UNEXPLAINED
from attentest.analysis.rates.expressions import (
    RETURNED,
    Key,
    Line,
    Ran,
    Traced,
    called_name,
    key_of,
)
from attentest.harness.errors import Absent, BackendError, Violation
from attentest.harness.subject import Subject
from attentest.harness.tolerances import as_floats
from attentest.results.verdict import Location
from attentest_spec import Sizes

COMPONENT = "learning_rate"
NEAR = 1e-6
"""The relative difference up to which two numbers count as equal: some code is in float32."""

_SIZES = Sizes(d_model=14, heads=1, warmup=40, total_steps=200, factor=1.7)
_OTHERS = {"d_model": 34, "warmup": 43, "factor": 3.1, "total_steps": 230}
_STEPS = (2, 130, 40, 1)
"""Steps that are tried in turn: in the warm-up, after it, at its end, and the first one."""


def line_of_rate(subject: Subject) -> Location | None:
    """Return the line that the error of a schedule comes from, None where unknown."""
    start = 2 if subject.choices.first_step == "zero" else 1
    sizes = subject.limits.fitted(_SIZES)
    for step in _STEPS:
        base = _run(subject, sizes, step + start - 1)
        if base is not None and not base.is_right:
            return _Error(subject, sizes, step + start - 1, base).location()
    return None


@dataclass
class _Run:
    """One call of the schedule: its answers, and the lines that ran for it, in their order.

    `values` are those of expressions as they were when the answer was computed.
    """

    computed: float = math.nan
    expected: float = math.nan
    values: dict[Key, float] = field(default_factory=dict)
    ran: list["Ran"] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether the schedule answers as the reference does."""
        return _equal(self.computed, self.expected)

    def at(self, root: ast.expr, node: ast.expr) -> int | None:
        """Return the number of the last line that ran and computed the answer by `node`."""
        for number in range(len(self.ran) - 1, -1, -1):
            one = self.ran[number]
            value = one.values.get(key_of(one.line.file, node)) if one.line.root is root else None
            if value is not None and _equal(value, self.computed):
                return number
        return None

    def end(self, last: int | None) -> None:
        """Take the values as they were after the line number `last`, of all lines for None."""
        self.values = {}
        for one in self.ran[: None if last is None else last + 1]:
            self.values |= one.values

    @property
    def ratio(self) -> float:
        """By how much the answer is too large."""
        return self.computed / self.expected if self.expected else math.nan


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= NEAR * max(abs(one), abs(other))


def _run(subject: Subject, sizes: Sizes, step: int) -> _Run | None:
    """Call the schedule at `step`; None where it raises."""
    run = _Run()
    try:
        with Traced() as run.ran:
            probe = subject.part(COMPONENT, sizes)
            run.computed = float(as_floats(probe.output(step)))
        run.expected = float(as_floats(probe.expected(step).output))
    except (Absent, BackendError, Violation, ValueError, TypeError):
        return None
    return run


class _Error:
    """The error of a schedule at one step, and how it changes with the sizes and the step."""

    def __init__(self, subject: Subject, sizes: Sizes, step: int, base: _Run) -> None:
        self._subject, self._sizes, self._step, self._base = subject, sizes, step, base

    @cached_property
    def _changed(self) -> dict[str, tuple[float, _Run]]:
        """By how much each size is larger in another call, and that call."""
        found = {}
        for name, value in _OTHERS.items():
            sizes = self._subject.limits.fitted(self._sizes.but(**{name: value}))
            before = getattr(self._sizes, name)
            if getattr(sizes, name) != before and (run := _run(self._subject, sizes, self._step)):
                found[name] = getattr(sizes, name) / before, run
        if run := _run(self._subject, self._sizes, self._step + 1):
            found["step"] = (self._step + 1) / self._step, run
        return found

    @cached_property
    def _moves(self) -> frozenset[str]:
        """The sizes, and the step, that the error changes with."""
        ratio = self._base.ratio
        return frozenset(
            name for name, (_, run) in self._changed.items() if not _equal(run.ratio, ratio)
        )

    def location(self) -> Location | None:
        """Return the line that the error comes from, None where no line has the result."""
        for one in reversed(self._base.ran):
            for node in filter(_computes, ast.walk(one.line.root)):
                at = self._base.at(one.line.root, node)
                if at is not None:
                    for run in (self._base, *(run for _, run in self._changed.values())):
                        run.end(run.at(one.line.root, node))
                    return self._named(one.line.file, self._source(one.line, node, at))
        return None

    def _named(self, file: str, number: int) -> Location:
        code = linecache.getline(file, number).strip()
        return Location(file, number, code, "learning rate", self._formula, self._mistake)

    def _source(self, line: Line, node: ast.expr, at: int) -> int:
        """Return the line of the innermost expression that carries the error alone."""
        line, node, at = self._made(line, node, at)
        carriers = []
        match node:
            case ast.BinOp(op=ast.Mult() | ast.Div(), left=left, right=right):
                operands = [left, right]
                carriers = [one for one in operands if self._follows(line, one)]
                if not self._moves:
                    carriers = [one for one in operands if not self._is_given(line, one)]
                elif not carriers and self._moves & {"step", "warmup"}:
                    carriers = [one for one in operands if self._is_choice(line, one, at)]
            case ast.Call(args=given):
                carriers = self._chosen(line, node, given)
            case ast.IfExp(body=body, orelse=other):
                carriers = self._chosen(line, node, [body, other])
        if len(carriers) == 1 and not isinstance(carriers[0], ast.Constant):
            return self._source(line, carriers[0], at)
        return node.lineno

    def _made(self, line: Line, node: ast.expr, at: int) -> tuple[Line, ast.expr, int]:
        """Return the expression that a name or a call means, with its line; any other as it is."""
        match node:
            case ast.Name(id=name):
                function = ""
            case ast.Call() if called_name(node):
                name, function = RETURNED, called_name(node)
            case _:
                return line, node, at
        for before in range(at - 1, -1, -1):
            made, within, _ = self._base.ran[before]
            if made.name == name and made.file == line.file and function in ("", within):
                return self._made(made, made.root, before)
        return line, node, at

    def _is_choice(self, line: Line, node: ast.expr, at: int) -> bool:
        """Say whether an operand is one of several values, or a product with one."""
        line, node, at = self._made(line, node, at)
        match node:
            case ast.BinOp(op=ast.Mult() | ast.Div(), left=left, right=right):
                return any(self._is_choice(line, one, at) for one in (left, right))
            case ast.Call(args=[_, _, *_]) | ast.IfExp():
                return True
        return False

    def _chosen(self, line: Line, node: ast.expr, given: list[ast.expr]) -> list[ast.expr]:
        """Return the arguments of a choice that the error can come from; none for the choice."""
        values = self._base.values
        result = values.get(key_of(line.file, node))
        known = {one: values.get(key_of(line.file, one)) for one in given}
        right = None if result is None else result / self._base.ratio
        if right is not None and any(one and _equal(one, right) for one in known.values()):
            return []  # the other one was to be taken
        taken = [one for one, value in known.items() if value == result]
        others = [one for one in given if one not in taken]
        if len(others) == 1 and any(self._is_right(line, node, one) for one in taken):
            return others  # it is too large for a minimum
        return taken if len(given) > 1 else given

    def _is_right(self, line: Line, node: ast.expr, taken: ast.expr) -> bool:
        """Say whether an operand is the result at another step, at which the schedule is right."""
        whole, part = (key_of(line.file, one) for one in (node, taken))
        return any(
            run.is_right and part in run.values and run.values[part] == run.values.get(whole)
            for run in self._elsewhere
        )

    @cached_property
    def _elsewhere(self) -> list[_Run]:
        runs = (_run(self._subject, self._sizes, one + self._step) for one in _STEPS)
        found = [one for one in runs if one is not None]
        for run in found:
            run.end(None)
        return found

    def _follows(self, line: Line, node: ast.expr) -> bool:
        """Say whether an operand changes with all that the error changes with."""
        key = key_of(line.file, node)
        before = self._base.values.get(key)
        if before is None or not self._moves or self._is_given(line, node):
            return False
        later = (self._changed[name][1].values.get(key) for name in self._moves)
        return all(one is not None and not _equal(one, before) for one in later)

    def _is_given(self, line: Line, node: ast.expr) -> bool:
        """Say whether the value is a size or the step itself, which cannot be wrong."""
        key = key_of(line.file, node)
        for name in ("step", *_OTHERS):
            size = self._counted if name == "step" else getattr(self._sizes, name)
            larger, run = self._changed.get(name, (1.0, self._base))
            grown = self._counted + 1 if name == "step" else size * larger
            values = self._base.values.get(key), run.values.get(key)
            if None not in values and values[0] == size and _equal(values[1] or 0.0, grown):
                return True
        return False

    @property
    def _counted(self) -> int:
        """The number of the step as the schedule counts."""
        return self._step - (self._subject.choices.first_step == "zero")

    @property
    def _formula(self) -> str:
        schedule = self._subject.choices.schedule
        if self._counted < self._sizes.warmup:
            return _RISING.get(schedule, "factor * step / warmup")
        return _FALLING[schedule]

    @property
    def _mistake(self) -> str:
        """The error in words: the power of each size in it, or the step whose rate it is."""
        for other, words in ((1, "the next step"), (-1, "the step before")):
            run = _run(self._subject, self._sizes, self._step + other)
            if run is not None and _equal(run.expected, self._base.computed):
                return f"the rate of {words}"
        powers = {}
        left = self._base.ratio
        for name in sorted(self._moves):
            larger, run = self._changed[name]
            if not run.ratio * self._base.ratio > 0:
                return UNEXPLAINED
            power = math.log(run.ratio / self._base.ratio) / math.log(larger)
            powers[name] = round(2 * power) / 2
            if abs(power - powers[name]) > 1e-4:
                return UNEXPLAINED
            value = self._step if name == "step" else getattr(self._sizes, name)
            left /= value ** powers[name]
        parts = [] if _equal(left, 1.0) else [f"{left:.6g}"]
        parts += [name if power == 1 else f"{name}^{power:g}" for name, power in powers.items()]
        return f"a rate {' * '.join(parts)} times as large"


def _computes(node: ast.AST) -> TypeGuard[ast.BinOp | ast.Call | ast.IfExp]:
    return isinstance(node, ast.BinOp | ast.Call | ast.IfExp)


_RISING = {"noam": "factor * d_model^-0.5 * step * warmup^-1.5"}
_FALLING = {
    "noam": "factor * d_model^-0.5 * step^-0.5",
    "linear": "factor * (total_steps - step) / (total_steps - warmup)",
    "cosine": "factor * (1 + cos(pi * (step - warmup) / (total_steps - warmup))) / 2",
    "constant": "factor",
}
