"""Schedules that count their own steps: classes and functions that are given an optimiser.

They are stepped as a training loop does it, and the rate of an update is the one that the optimiser
holds while it makes that update.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.training.schedule_names import OPTIMIZERS, SIZES, sizes_in
from attentest_spec import Sizes

STEPS = ("step", "step_and_update_lr", "update_and_step", "update", "update_lr", "step_update")
"""Methods that go on by a step, the likeliest first."""


class Updates:
    """The rates of the updates of an optimiser, by their numbers from 1.

    `build` is given an optimiser at the rate `base`, and returns what has the method `method`: a
    scheduler, which is stepped after the optimiser, or a wrapper that steps the optimiser itself.
    """

    most = 100_000

    def __init__(self, build: Any, method: str, base: float) -> None:
        """Take what builds the schedule."""
        self.build, self.method, self.base = build, method, base
        self.is_wrapper: bool | None = None

    def begin(self) -> None:
        """Build an optimiser that notes its rates, and the schedule that is given it."""
        import torch

        rates = self.rates = list[float]()

        class Noting(torch.optim.SGD):
            def step(self, closure: Any = None) -> None:  # type: ignore[override]
                rates.append(float(self.param_groups[0]["lr"]))

        self.optimizer = Noting([torch.nn.Parameter(torch.zeros(1))], lr=self.base)
        self.built = self.build(self.optimizer)

    def update(self) -> None:
        """Make one update."""
        if not self.is_wrapper:
            self.optimizer.step()
        getattr(self.built, self.method)()

    def __call__(self, number: int) -> float:
        """Return the rate of the update `number`; a smaller one than before begins anew."""
        from attentest_spec import Unsupported

        if not 1 <= number <= self.most:
            raise Unsupported(f"it counts its steps itself, from 1, and is not asked for {number}")
        if self.is_wrapper is None:
            self.is_wrapper = False
            self.begin()
            self.update()
            self.is_wrapper = len(self.rates) > 1
            self.begin()
        if number < len(self.rates):
            self.begin()
        while len(self.rates) < number:
            self.update()
        return self.rates[number - 1]


@dataclass(frozen=True)
class Counting:
    """The call of a schedule that counts by itself, built with sizes and an optimiser.

    `built` maps arguments of the constructor, or of the function, to sizes, and `fixed` hold
    constants. `method` goes on by a step; `scaled` says that the rate that the optimiser begins
    with is the factor.
    """

    thing: Any
    optimizer: str
    method: str
    built: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    scaled: bool = False

    offset = 0
    ends = ()

    @property
    def sizes(self) -> frozenset[str]:
        """The sizes that it takes."""
        return frozenset([*self.built.values(), *["factor"] * self.scaled])

    @property
    def roles(self) -> dict[str, str]:
        """The argument of every size."""
        more = {"factor": "the optimiser's rate"} if self.scaled else {}
        return {size: own for own, size in self.built.items()} | more

    @property
    def counted(self) -> str:
        """The words for the counting of its steps."""
        return f"it counts its steps itself: {self.method} is called once for each update"

    @property
    def needs(self) -> list[str]:
        """The lines that its text needs before it."""
        return ["from typing import Any", "", "", *inspect.getsource(Updates).splitlines(), "", ""]

    def at(self, sizes: Sizes) -> Updates:
        """Return the function of the step at `sizes`."""
        given = {own: getattr(sizes, size) for own, size in self.built.items()}

        def build(optimizer: Any) -> Any:
            return self.thing(**{self.optimizer: optimizer}, **given, **self.fixed)

        return Updates(build, self.method, self._base(sizes.factor))

    def _base(self, factor: Any) -> Any:
        return factor if self.scaled else 1.0

    def text(self, name: str, step: str, value: Callable[[str], str]) -> str:
        """Return the call as code; `value` writes a size."""
        given = [f"{own}={value(size)}" for own, size in self.built.items()]
        given += [f"{own}={one!r}" for own, one in self.fixed.items()]
        call = f"{name}({', '.join([f'{self.optimizer}=optimizer', *given])})"
        base = self._base(value("factor"))
        return f'Updates(lambda optimizer: {call}, "{self.method}", {base})({step})'


def optimizer_of(thing: Any) -> str:
    """Return the argument of `thing` that carries an optimiser, "" for none."""
    try:
        own = inspect.signature(thing).parameters
    except (TypeError, ValueError):  # it has no signature
        return ""
    return next((one for one in own if squashed(one) in OPTIMIZERS), "")


def counts_itself(thing: Any) -> bool:
    """Say whether `thing` is a class or function that is given an optimiser and a warm-up."""
    if not optimizer_of(thing):
        return False
    if inspect.isclass(thing) and not _method(thing):
        return False
    named = {squashed(one) for one in inspect.signature(thing).parameters}
    return not named.isdisjoint(SIZES["warmup"])


def _method(thing: type) -> str:
    return next((one for one in STEPS if callable(getattr(thing, one, None))), "")


def countings(thing: Any, reading: Reading) -> Iterator[Counting]:
    """Yield how a schedule that counts by itself may be called, the likeliest first."""
    if not (optimizer := optimizer_of(thing)):
        return
    made = [one for one in inspect.signature(thing).parameters if one != optimizer]
    built = sizes_in(made, reading)
    method = _method(thing) if inspect.isclass(thing) else "step"
    if not method:
        return
    for scaled in (False,) if "factor" in built.values() else (True, False):
        yield Counting(thing, optimizer, method, built, dict(reading.given), scaled)


def sets_rates(found: Counting, sizes: Sizes) -> bool:
    """Say whether it steps the optimiser, or leaves some update another rate than at first."""
    rates = found.at(sizes)
    try:
        differ = any(float(rates(step)) != rates.base for step in range(1, 6))
    except Exception:  # code that a user wrote may raise anything
        return False
    return differ or bool(rates.is_wrapper)


_SETS = re.compile(r"_*(update|set|adjust|change)\w*(lr|rate)\w*")
"""Names of methods that set rates."""


def other_method(found: Counting, sizes: Sizes) -> str:
    """Return the method that may set the rates where `method` leaves all as they are, or ""."""
    rates = found.at(sizes)
    try:
        differ = any(float(rates(step)) != rates.base for step in range(1, 6))
    except Exception:  # code that a user wrote may raise anything
        return ""
    named = [own for own in dir(found.thing) if own != found.method and _SETS.fullmatch(own)]
    return "" if differ or not named else named[0]
