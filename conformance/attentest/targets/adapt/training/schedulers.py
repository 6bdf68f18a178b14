"""Schedules that count their own steps: classes and functions that are given an optimiser.

They are stepped as a training loop does it, and the rate of an update is the one that the optimiser
holds while it makes that update.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.training.schedule_names import (
    AFTER,
    OF_WARMUPS,
    OPTIMIZERS,
    WARMUPS,
    first_rates,
    is_share,
    sizes_in,
)
from attentest.targets.adapt.training.shares import SHARE_SOURCE, sized, sized_text
from attentest_spec import Sizes

STEPS = ("step", "step_and_update_lr", "update_and_step", "update", "update_lr", "step_update")
"""Methods that go on by a step, the likeliest first."""


class Updates:
    """The rates of the updates of an optimiser, by their numbers from 1.

    `build` is given an optimiser at the rate `base`, and returns what has the method `method`: a
    scheduler, which is stepped after the optimiser, or a wrapper that steps the optimiser itself.
    With `first`, the scheduler is stepped before the optimiser.
    """

    most = 100_000

    def __init__(self, build: Any, method: str, base: float, first: bool = False) -> None:
        """Take what builds the schedule."""
        self.build, self.method, self.base, self.first = build, method, base, first
        self.is_wrapper: bool | None = None

    def begin(self) -> None:
        """Build an optimiser that notes its rates, and the schedule that is given it."""
        rates = self.rates = list[float]()

        class Noting(torch.optim.SGD):
            def step(self, closure: Any = None) -> None:  # type: ignore[override]
                rates.append(float(self.param_groups[0]["lr"]))

        self.optimizer = Noting([torch.nn.Parameter(torch.zeros(1))], lr=self.base)
        self.built = self.build(self.optimizer)

    def update(self) -> None:
        """Make one update."""
        steps = [getattr(self.built, self.method)]
        if not self.is_wrapper:
            steps.insert(1 if self.first else 0, self.optimizer.step)
        for step in steps:
            step()

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
    with is the factor. The argument `after` gets a schedule of constant rates, and `starts` are
    those of `fixed` that are the rate of the first step. With `share`, the warm-up is given as a
    share of all steps, and with `first`, it goes on before the optimiser's step.
    """

    thing: Any
    optimizer: str
    method: str
    built: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    scaled: bool = False
    after: str = ""
    starts: tuple[str, ...] = ()
    share: bool = False
    first: bool = False

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
        order = ", before that of the optimiser" if self.first else ""
        return f"it counts its steps itself: {self.method} is called once for each update{order}"

    @property
    def doubts(self) -> Iterator[str]:
        """Yield what is assumed of its calls."""
        if self.after:
            yield f"assumed that {self.after} is judged by itself: it gets constant rates"
        if self.first:
            yield (
                f"assumed that {self.method} is called before the step of the optimiser, because "
                f"the optimiser is given no rate until then; called after it, the first update is "
                f"made with the optimiser's own rate"
            )

    @property
    def needs(self) -> list[str]:
        """The lines that its text needs before it."""
        return [
            "from typing import Any",
            "",
            "import torch",
            "",
            "",
            *[*SHARE_SOURCE] * self.share,
            *inspect.getsource(Updates).splitlines(),
            "",
            "",
        ]

    def at(self, sizes: Sizes) -> Updates:
        """Return the function of the step at `sizes`."""
        given = sized(self.built, sizes, share=self.share)

        def build(optimizer: Any) -> Any:
            after = {self.after: _constant(optimizer)} if self.after else {}
            return self.thing(**{self.optimizer: optimizer}, **given, **self.fixed, **after)

        return Updates(build, self.method, self._base(sizes.factor), self.first)

    def _base(self, factor: Any) -> Any:
        return factor if self.scaled else 1.0

    def text(self, name: str, step: str, value: Callable[[str], str]) -> str:
        """Return the call as code; `value` writes a size."""
        given = sized_text(self.built, value, share=self.share)
        given += [f"{own}={one!r}" for own, one in self.fixed.items()]
        given += [f"{self.after}={_CONSTANT}"] if self.after else []
        call = f"{name}({', '.join([f'{self.optimizer}=optimizer', *given])})"
        base = self._base(value("factor"))
        first = ", first=True" if self.first else ""
        return f'Updates(lambda optimizer: {call}, "{self.method}", {base}{first})({step})'


_CONSTANT = "torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)"


def _constant(optimizer: Any) -> Any:
    """Return a scheduler that leaves the rate of `optimizer` as it is."""
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)


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
    arguments = inspect.signature(thing).parameters
    named = {squashed(one) for one in arguments}
    return not named.isdisjoint(WARMUPS) or bool(_warmup_of(thing, arguments))


def _warmup_of(thing: Any, arguments: Iterable[str]) -> str:
    """Return the one length that what is called a warm-up takes, "" for none."""
    lengths = [one for one in arguments if squashed(one) in OF_WARMUPS]
    is_warmup = inspect.isclass(thing) and "warmup" in squashed(thing.__name__)
    return lengths[0] if is_warmup and len(lengths) == 1 else ""


def steps_by_number(thing: Any) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the methods of a class with an optimiser that go on to the step that they are given."""
    for method in STEPS if inspect.isclass(thing) and optimizer_of(thing) else ():
        if callable(found := getattr(thing, method, None)) and _needs_more(found):
            signature = inspect.signature(found)
            yield method, signature.replace(parameters=[*signature.parameters.values()][1:])


def _needs_more(method: Any) -> bool:
    """Say whether a method of a class has an argument without a default."""
    _, *rest = inspect.signature(method).parameters.values()
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(one.default is one.empty and one.kind not in loose for one in rest)


def _method(thing: type) -> str:
    return next((one for one in STEPS if callable(getattr(thing, one, None))), "")


def countings(thing: Any, reading: Reading) -> Iterator[Counting]:
    """Yield how a schedule that counts by itself may be called, the likeliest first."""
    if not (optimizer := optimizer_of(thing)):
        return
    arguments = inspect.signature(thing).parameters
    made = [one for one in arguments if one != optimizer]
    built = sizes_in(made, reading)
    if "warmup" not in built.values() and (length := _warmup_of(thing, made)):
        built[length] = "warmup"
    method = _method(thing) if inspect.isclass(thing) else "step"
    if not method or (inspect.isclass(thing) and _needs_more(getattr(thing, method))):
        return
    starts = first_rates(arguments, reading)
    needed = [one for one in made if arguments[one].default is inspect.Parameter.empty]
    after = next((one for one in needed if squashed(one) in AFTER), "")
    fixed = {**reading.given, **dict.fromkeys(starts, 0.0)}
    ways = [built]
    for own in (one for one, size in built.items() if squashed(one) == "multiplier"):
        rest = {one: size for one, size in built.items() if one != own}
        ways.append(rest)  # of the rate of the optimiser
    for one in ways:
        more = {} if one is built else dict.fromkeys([*{*built} - {*one}], 1.0)
        for scaled in (False,) if "factor" in one.values() else (True, False):
            found = Counting(
                thing, optimizer, method, one, {**fixed, **more}, scaled, after, starts
            )
            yield replace(found, share=is_share(found.roles.get("warmup", "")))


def sets_rates(found: Counting, sizes: Sizes) -> bool:
    """Say whether it steps the optimiser, or leaves some update another rate than at first."""
    rates = found.at(sizes)
    try:
        differ = any(float(rates(step)) != rates.base for step in range(1, 6))
    except Exception:  # code that a user wrote may raise anything
        return False
    return differ or bool(rates.is_wrapper)


def goes_first(found: Counting, sizes: Sizes) -> bool:
    """Say whether it gives the optimiser no rate before its first step.

    Schedulers of torch do, for the first update; an own class that does not is stepped before it,
    if its name says that it is a scheduler: a wrapper may have forgotten to step its optimiser.
    """
    if not inspect.isclass(found.thing) or "schedul" not in squashed(found.thing.__name__):
        return False
    rates = found.at(sizes)
    try:
        rates(1)  # tells a wrapper
        rates.begin()
        own = not isinstance(rates.built, torch.optim.lr_scheduler.LRScheduler)
        kept = all(one["lr"] == rates.base for one in rates.optimizer.param_groups)
        rates.optimizer.step()
        getattr(rates.built, rates.method)()
        stepped = any(one["lr"] != rates.base for one in rates.optimizer.param_groups)
    except Exception:  # code that a user wrote may raise anything
        return False
    return own and kept and stepped and not rates.is_wrapper


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
