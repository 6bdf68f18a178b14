"""The call of a schedule that is a function of the step, or a class with such a method."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from attentest.targets.adapt.training.constants import SOURCE, with_constants
from attentest.targets.adapt.training.shares import SHARE_SOURCE, sized, sized_text
from attentest_spec import Sizes, Unsupported


def rate_set(build: Any, method: str, **given: Any) -> Any:
    """Return the rate that `method` of what `build` makes of an optimiser gives that."""
    optimizer = SimpleNamespace(param_groups=[{"lr": 1.0}])
    getattr(build(optimizer), method)(**given)
    return optimizer.param_groups[0]["lr"]


_OPTIMIZER = 'SimpleNamespace(param_groups=[{"lr": 1.0}])'
"""An optimiser of which the rates alone are looked at: one of torch takes seconds to import."""


@dataclass(frozen=True)
class Schedule:
    """The call of code: `thing` built with sizes, a `method` of it ("" for a function).

    `built` and `called` map the arguments of the constructor and of the call to sizes; `step` is
    the argument that carries the step, `fixed` hold arguments, and `offset` is added to a step.
    `sets` says that the method returns nothing and gives its optimiser the rate.
    `constants` of its module carry sizes, too, those of steps less `late`, and the `ends` are the
    `last_rate`, and the `starts` are those of `fixed` that are the rate of the first step.
    With `share`, its warm-up is given as a share of all steps.
    """

    thing: Any
    step: str
    method: str = ""
    built: Mapping[str, str] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    optimizer: str = ""
    offset: int = 0
    constants: Mapping[str, str] = field(default_factory=dict)
    ends: tuple[str, ...] = ()
    late: int = 0
    last_rate: float = 0.0
    sets: bool = False
    starts: tuple[str, ...] = ()
    share: bool = False

    @property
    def sizes(self) -> frozenset[str]:
        """The sizes that it takes."""
        return frozenset([*self.built.values(), *self.called.values(), *self.constants.values()])

    @property
    def roles(self) -> dict[str, str]:
        """The argument of the step, and that of every size."""
        given = (self.constants, self.built, self.called)
        sized = {size: own for one in given for own, size in one.items()}
        return {"step": self.step, **sized}

    @property
    def counted(self) -> str:
        """The words for the counting of its steps."""
        return "its steps count from 0, as measured" if self.offset else "steps count from 1"

    @property
    def needs(self) -> list[str]:
        """The lines that its text needs before it."""
        own = ["", "", *SOURCE, "", ""] if self.constants else [*SHARE_SOURCE] * self.share
        if self.sets:
            source = inspect.getsource(rate_set).splitlines()
            own = ["from typing import Any", *own, "", "", *source, "", ""]
        return ["from types import SimpleNamespace"] * bool(self.optimizer) + own

    def at(self, sizes: Sizes) -> Callable[[int], Any]:
        """Return the function of the step at `sizes`."""
        call = self.thing
        if self.method:
            made = sized(self.built, sizes, share=self.share)
            if self.sets:
                return self._setting(made)
            if self.optimizer:
                made[self.optimizer] = SimpleNamespace(param_groups=[{"lr": 1.0}])
            call = getattr(call(**made, **self.fixed), self.method)
        if self.constants and sizes.warmup < 1:
            raise Unsupported("its sizes are constants of its module, and not given to it")
        if self.constants:
            call = with_constants(call, **self._constants(lambda size: getattr(sizes, size)))
        given = sized(self.called, sizes, share=self.share)
        given |= {} if self.method else self.fixed
        return lambda step: call(**{self.step: step + self.offset}, **given)

    def _setting(self, made: Mapping[str, Any]) -> Callable[[int], Any]:
        def build(optimizer: Any) -> Any:
            return self.thing(**{self.optimizer: optimizer}, **made, **self.fixed)

        return lambda step: rate_set(build, self.method, **{self.step: step + self.offset})

    def _constants(self, value: Callable[[str], Any]) -> dict[str, Any]:
        """Return the values of the constants; `value` is a size, or its text."""
        found = {own: value(size) for own, size in self.constants.items()}
        for own, size in self.constants.items() if self.late else ():
            if size in ("warmup", "total_steps"):
                is_text = isinstance(found[own], str)
                found[own] = f"{found[own]} - {self.late}" if is_text else found[own] - self.late
        return found | dict.fromkeys(self.ends, self.last_rate)

    def text(self, name: str, step: str, value: Callable[[str], str]) -> str:
        """Return the call as code; `value` writes a size."""
        if self.constants:
            given = ", ".join(f"{own}={one}" for own, one in self._constants(value).items())
            name = f"with_constants({name}, {given})"

        def named(arguments: Mapping[str, str], more: Mapping[str, Any]) -> list[str]:
            given = sized_text(arguments, value, share=self.share)
            return given + [f"{own}={one!r}" for own, one in more.items()]

        moved = f"{step} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        first = f"{self.step}={moved if self.offset else step}"
        if not self.method:
            return f"{name}({', '.join([first, *named(self.called, self.fixed)])})"
        made = named(self.built, self.fixed)
        if self.sets:
            built = f"{name}({', '.join([f'{self.optimizer}=optimizer', *made])})"
            return f'rate_set(lambda optimizer: {built}, "{self.method}", {first})'
        if self.optimizer:
            made.append(f"{self.optimizer}={_OPTIMIZER}")
        call = "" if self.method == "__call__" else f".{self.method}"
        return f"{name}({', '.join(made)}){call}({', '.join([first, *named(self.called, {})])})"
