"""Schedules of the learning rate: a function of the step, or a class with such a method.

The rates themselves say which schedule it is, and whether its steps count from 0. A schedule that
takes the width of the model is meant as that of the paper, even where its rates are not.
"""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import torch

from attentest.harness.reproduction import Action, Build, Call
from attentest.results.text import summary
from attentest.targets.adapt.assumptions.choices import assumed, declared_choices, pairs
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.adapt.training.constants import constants_of
from attentest.targets.adapt.training.last_rates import (
    ending_at_zero,
    last_rate_arguments,
    require_use_of_last_rates,
)
from attentest.targets.adapt.training.schedule_call import Schedule
from attentest.targets.adapt.training.schedule_names import (
    METHODS,
    NAMES,
    OPTIMIZERS,
    STEP,
    WARMUPS,
    first_rates,
    is_share,
    require_sizes,
    sizes_in,
)
from attentest.targets.adapt.training.schedulers import (
    Counting,
    countings,
    counts_itself,
    goes_first,
    other_method,
    sets_rates,
    steps_by_number,
)
from attentest.targets.models.written import definition
from attentest.targets.origin import Origin, origin
from attentest_spec import CHOICES, Choices, Limits, Setting, Sizes
from attentest_spec.choices import Value
from attentest_spec.schedule import learning_rate
from attentest_spec.setting import Floats
from attentest_spec.torch import Recipe, TorchBackend

COMPONENT = "learning_rate"

PROBES = (
    Sizes(d_model=16, warmup=7, total_steps=41, factor=1.0),
    Sizes(d_model=64, warmup=12, total_steps=90, factor=0.25),
)
"""Two settings that differ in everything."""


@dataclass(frozen=True, kw_only=True)
class AdaptedSchedule(TorchBackend):
    """A backend made of a schedule; see :class:`~attentest.targets.adapt.adaptation.Adapted`."""

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    schedule: Schedule | Counting
    origin: Origin
    fits: bool = True

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own code, with nothing between."""
        built = {one.number: one.sizes for one in actions if isinstance(one, Build)}
        lines = [*self.schedule.needs, *self.origin.imports]
        for one in actions:
            if isinstance(one, Call):
                sizes = built[one.number]
                text = self.schedule.text(
                    self.origin.expression,
                    str(one.inputs[0]),
                    lambda size, sizes=sizes: repr(getattr(sizes, size)),  # type: ignore[misc]
                )
                lines.append(f"print({text})")
        return "\n".join(lines)

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        text = self.schedule.text(self.origin.expression, "step", lambda size: f"sizes.{size}")
        recipe = f"build=lambda sizes: lambda step: {text}"
        own = definition(self.name, COMPONENT, recipe, self.choices, self.limits)
        return "\n".join(
            [
                f'"""The adapter of {self.name}."""',
                "",
                *self.schedule.needs,
                "from attentest_spec import Limits",
                "from attentest_spec.torch import Recipe, TorchBackend",
                *self.origin.imports,
                "",
                *(f"# {one}" for one in self.understood),
                own,
            ]
        )


def is_schedule(thing: Any, reading: Reading, name: str) -> bool:
    """Say whether `thing` is taken for a schedule.

    It is as you say, or by its name and an argument for the step, or by arguments for the step and
    for the warm-up.
    """
    if reading.component:
        return reading.component == COMPONENT
    if isinstance(thing, torch.nn.Module) or not callable(thing):
        return False
    if counts_itself(thing):
        return True
    own = squashed(name or getattr(thing, "__name__", ""))
    try:
        stepped = [(method, one) for method, one in _calls(thing) if _steps(one)]
        made = inspect.signature(thing).parameters if stepped else {}
    except (TypeError, ValueError):  # it has no signature
        return False
    if NAMES.fullmatch(own):
        return bool(stepped)
    arguments = {squashed(one) for _, call in stepped for one in (*call.parameters, *made)}
    return not arguments.isdisjoint(WARMUPS)


def adapt_schedule(
    thing: Any, reading: Reading, name: str = "", home: ModuleType | None = None
) -> AdaptedSchedule:
    """Return a schedule as a backend; Unclear where it does not say how it is called."""
    own = name or getattr(thing, "__name__", type(thing).__name__)
    last = last_rate_arguments(thing, reading)
    schedule, measured = _found(thing, own, ending_at_zero(reading, last))
    if measured and not reading.anyway:
        require_use_of_last_rates(own, schedule, last, PROBES)
    declared = declared_choices(measured, reading)
    limits = Limits(rate_factor="factor" in schedule.sizes)
    judged_as = f"{own} is judged as {COMPONENT}"
    roles = schedule.roles
    arguments = f"arguments: {', '.join(f'{role}={mine}' for role, mine in roles.items())}"
    guessed = () if measured else (_MEANT.format(own=own),) * (not reading.choices)
    doubts = (
        *guessed,
        *assumed(declared, reading),
        *_ends((*last, *schedule.ends)),
        *_others(schedule),
    )
    return AdaptedSchedule(
        name=own,
        title=f"{own}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(build=schedule.at, call=lambda built, step: built(step))},
        choices=declared,
        limits=limits,
        schedule=schedule,
        origin=origin(thing, home, own),
        fits=bool(measured),
        understood=(judged_as, *doubts, arguments, schedule.counted),
        assumed=doubts,
        summary=f"{own} called ({', '.join(pairs(roles.items()))}); {schedule.counted}",
    )


_MEANT = (
    "assumed that {own} is meant as the schedule of the paper, because it takes the width of the "
    "model; if it is another one, say which with --choice schedule=NAME"
)


def _ends(names: Sequence[str]) -> Iterator[str]:
    """Yield that the last rate is taken as 0: all listed schedules end there."""
    for own in names:
        yield f"assumed {own}=0, at which the schedules of the spec end: its value is not judged"


def _others(schedule: Schedule | Counting) -> Iterator[str]:
    """Yield what else a schedule is given that counts by itself."""
    for own in schedule.starts:
        yield f"assumed {own}=0, at which the schedules of the spec begin: its value is not judged"
    if isinstance(schedule, Counting):
        yield from schedule.doubts


def _calls(thing: Any) -> Iterator[tuple[str, inspect.Signature]]:
    """Yield the ways of calling it: the name of the method, "" for a function, and its signature.

    A constructor is no call.
    """
    if not inspect.isclass(thing):
        yield "", inspect.signature(thing)
        return
    for method in METHODS:
        held = (vars(one)[method] for one in thing.__mro__[:-1] if method in vars(one))
        if callable(found := next(held, None)):
            signature = inspect.signature(found)
            _, *rest = signature.parameters.values()
            yield method, signature.replace(parameters=rest)
    yield from steps_by_number(thing)


def _steps(signature: inspect.Signature) -> list[str]:
    """Return the arguments that may carry the step, the likeliest first."""
    own = {squashed(name): name for name in signature.parameters}
    return [own[word] for word in STEP if word in own]


def _schedule(thing: Any, own: str, reading: Reading) -> Schedule:
    named = reading.arguments.get("step", "")
    for method, signature in _calls(thing):
        step = named if named in signature.parameters else next(iter(_steps(signature)), "")
        if not step:
            continue
        made = inspect.signature(thing).parameters if method else {}
        rest = {one: what for one, what in signature.parameters.items() if one != step}
        optimizer = next((one for one in made if squashed(one) in OPTIMIZERS), "")
        built = sizes_in([one for one in made if one != optimizer], reading)
        called = sizes_in(rest, reading)
        sets = method in [one for one, _ in steps_by_number(thing)]
        starts = first_rates({**made, **rest}, reading)
        given = {**reading.given, **dict.fromkeys(starts, 0.0)}
        found = Schedule(
            thing, step, method, built, called, given, optimizer, sets=sets, starts=starts
        )
        if not method and "warmup" not in called.values():
            constants, ends = constants_of(thing, reading)
            found = replace(found, constants=constants, ends=ends)
        found = replace(found, share=is_share(found.roles.get("warmup", "")))
        require_sizes(own, found, {**made, **rest}, reading)
        return found
    raise Unclear(
        f"No argument of {own} carries the step. Say which one does with --argument step=NAME; a "
        f"class needs a method {' or '.join(METHODS[1:3])} that takes it."
    )


Found = tuple[Schedule | Counting, dict[str, Value]]
"""A schedule with its offset, and the options that its rates show, {} for none."""


def _found(thing: Any, own: str, reading: Reading) -> Found:
    """Return the schedule that `thing` is: one that is stepped, or else a function of the step."""
    ways = list(countings(thing, reading))
    if ways:
        require_sizes(own, ways[0], inspect.signature(thing).parameters, reading)
    stepped_ways = [one for one in ways if any(sets_rates(one, probe) for probe in PROBES)]
    stepped_ways += [replace(one, first=True) for one in stepped_ways if goes_first(one, PROBES[0])]
    for one in stepped_ways:
        options = [each for each in _counted_options() if _fits(one, each)]
        if len(options) == 1:
            return one, {"schedule": options[0].schedule, "first_step": options[0].first_step}
    if stepped_ways or (ways and not any(_steps(call) for _, call in _calls(thing))):
        return _unlisted([*ways, *stepped_ways][-1], own, reading)
    return _measured(_schedule(thing, own, reading), own, reading)


def _counted_options() -> list[Choices]:
    return [replace(one, first_step=step) for step in _FIRST for one in _options()]


_FIRST = ("one", "zero")


def _measured(found: Schedule, own: str, reading: Reading) -> Found:
    """Return the schedule with its offset, and the option that its rates show, {} for none."""
    lates = (0, 1) if found.constants else (0,)
    ways = [
        replace(found, offset=offset, late=late, share=share)
        for share, late, offset in product(_shares_of(found), lates, (0, -1))
    ]
    for moved in ways:
        options = [one for one in _options() if _fits(moved, one)]
        if len(options) == 1:
            return moved, {"schedule": options[0].schedule}
    meant = Choices(schedule=str(reading.choices.get("schedule", "noam")))
    nearest = max(ways, key=lambda one: _right_rates(one, meant))
    in_part = _right_rates(nearest, meant) > 0.4  # all of the warm-up, or of what follows it
    return _unlisted(nearest if in_part else found, own, reading)


def _shares_of(found: Schedule) -> Sequence[bool]:
    """Return whether the warm-up is a share of all steps, the likelier first."""
    held = {size for size in found.sizes if size not in found.constants.values()}
    return (found.share, True)[: 1 + (not found.share and {"warmup", "total_steps"} <= held)]


def _unlisted(found: Schedule | Counting, own: str, reading: Reading) -> Found:
    """Return a schedule of unlisted rates where it is clear what it is meant as; else Unclear."""
    _probe(found, own)
    if reading.anyway or reading.strict or "schedule" in reading.choices:
        return found, {}
    if multiple := _multiple(found):
        raise Unclear(
            f"Every rate of {own} is {multiple:g} times that of the paper. If that factor is "
            f"meant, make it an argument called factor; with --anyway it is judged as a mistake."
        )
    if isinstance(found, Counting) and _is_late(found):
        raise Unclear(
            f"The second update of {own} has the rate of the first one again, and all later ones "
            f"come a step late, as where a function of the step takes 0 for 1. If that is meant, "
            f"nothing is left to judge; with --choice schedule=noam it is judged as a mistake."
        )
    if isinstance(found, Counting) and (method := other_method(found, PROBES[0])):
        raise Unclear(
            f"{own}.{found.method} leaves the rate as it is, and {method} may set it: both have to "
            f"be called for an update, and one is by this reading. Write a function of the step "
            f"that calls both in a file of your own; with --anyway it is judged without {method}."
        )
    if "d_model" in found.sizes:
        return found, {}
    raise Unclear(
        f"The rates of {own} are those of no listed schedule. Say which one it should be with "
        f"--choice schedule=NAME, one of: {', '.join(CHOICES['schedule'].names)}.",
        attempts=list(_attempts(found)),
    )


def _attempts(found: Schedule | Counting) -> Iterator[Attempt]:
    """Yield that one small number is 0, as a last rate, or a larger one 1, as a power.

    A power of 0 would give a constant rate, and excuse any mistake in the decay.
    """
    taken = {*found.roles.values(), *found.fixed}
    for own, one in inspect.signature(found.thing).parameters.items():
        usual = one.default
        number = isinstance(usual, int | float) and not isinstance(usual, bool)
        if own not in taken and number and usual > 0:
            value = 1 if usual >= 0.5 else 0
            yield from [Attempt(given={own: value})] * (value != usual)


def _options() -> list[Choices]:
    return [Choices(schedule=one) for one in CHOICES["schedule"].names]


def _probe(found: Schedule | Counting, own: str) -> None:
    """Refuse code that fails in an ordinary call."""
    try:
        float(found.at(PROBES[0])(PROBES[0].warmup))
    except Exception as failure:  # code that a user wrote may raise anything
        raise Unclear(f"{own} failed in a probing call: {summary(failure)}.") from failure


def _rates(found: Schedule | Counting, choices: Choices) -> tuple[Floats, Floats]:
    """Return the rates of both probes, and those of the reference."""
    actual, expected = [], []
    for probe in PROBES:
        sizes = probe if "factor" in found.sizes else probe.but(factor=1.0)
        rate = found.at(sizes)
        for step in (1, 2, 3, sizes.warmup, sizes.warmup + 1, 30, sizes.total_steps - 1):
            actual.append(float(rate(step)))
            expected.append(float(learning_rate(Setting(sizes, choices), step)))
    return np.array(actual), np.array(expected)


def _fits(found: Schedule | Counting, choices: Choices) -> bool:
    return _right_rates(found, choices) == 1.0


def _right_rates(found: Schedule | Counting, choices: Choices) -> float:
    """Return the share of the rates that are those of the reference."""
    try:
        actual, expected = _rates(found, choices)
    except Exception:  # code that a user wrote may raise anything
        return 0.0
    return float(np.isclose(actual, expected, rtol=1e-6, atol=1e-12).mean())


def _is_late(found: Counting) -> bool:
    """Say whether it has the rates of a step before, and no rate of 0 at the first update."""
    for option in _options():
        try:
            actual, expected = _rates(found, replace(option, first_step="zero"))
        except Exception:  # code that a user wrote may raise anything
            return False
        firsts = np.flatnonzero(expected == 0)
        late = np.where(expected == 0, np.roll(expected, -1), expected)
        if len(firsts) and np.allclose(actual, late, rtol=1e-6, atol=1e-12):
            return True
    return False


def _multiple(found: Schedule | Counting) -> float:
    """Return the one factor between the rates and those of the paper, 0 where there is none."""
    try:
        actual, expected = _rates(found, Choices())
    except Exception:  # code that a user wrote may raise anything
        return 0.0
    ratio = actual / expected
    return float(ratio[0]) if np.allclose(ratio, ratio[0], rtol=1e-6) and ratio[0] > 0 else 0.0
