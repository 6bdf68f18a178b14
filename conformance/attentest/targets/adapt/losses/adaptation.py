"""From a loss that a user wrote to a backend: everything that is inferred is said."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from attentest.harness.reproduction import Action
from attentest.targets.adapt import arguments
from attentest.targets.adapt.assumptions.choices import assumed, chosen, declared_choices
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.losses.calling import (
    WORDS,
    LossCall,
    extra,
    holding,
    sizes_given,
    switches,
)
from attentest.targets.adapt.losses.measuring import (
    RATE,
    SIZES,
    Build,
    Measured,
    case,
    measured,
    shifts_itself,
)
from attentest.targets.adapt.losses.writing import LossScript, adapter_text
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.precisions import precisions_of
from attentest.targets.single import SINGLE, rounds_to_single
from attentest_spec import CHOICES, Choices, Limits
from attentest_spec.choices import Value
from attentest_spec.torch import DTYPES, Recipe, TorchBackend

COMPONENT = "loss"
AXES = tuple(name for name, one in CHOICES.items() if one.clause.startswith("loss."))


@dataclass(frozen=True, kw_only=True)
class AdaptedLoss(TorchBackend):
    """A backend made of a loss that was not written for the contract.

    The fields are those of other inferred backends; `sizes` are the arguments of a call that get
    a size, `given` those that are fixed.
    """

    understood: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    summary: str = ""
    code: Code
    call: LossCall
    given: dict[str, Any]

    def reproduction_script(self, actions: Sequence[Action]) -> str:
        """Return code that repeats `actions` on the user's own code, with nothing between."""
        return LossScript(self.code, self.call, self.given).text(actions)

    def written(self) -> str:
        """Return the adapter as the text of a Python file."""
        return adapter_text(
            self.code, self.call, self.given, dict(self.choices), self.limits, self.understood
        )


def adapt_loss(code: Code, reading: Reading) -> AdaptedLoss:
    """Return a loss as a backend; Unclear, with what to add, where its numbers show nothing."""
    declared = {axis: value for axis, value in reading.choices.items() if axis in AXES}
    attempt, switch = _attempted(code, reading, declared)
    call, given, build, known, found = attempt
    if isinstance(found, list):
        if not (reading.anyway or {"loss_input", "loss_normaliser"} <= declared.keys()):
            raise Unclear(_question(code, build, call, declared, found))
        found = Measured(call, Choices.of(declared), None, None, certain=False)
    counts_all = found.counts_all and not (reading.strict or reading.anyway)
    found = replace(found, counts_all=counts_all)
    follows = "target_pad" in known or found.call.mask or found.call.lengths
    if not (found.certain or follows or counts_all or reading.anyway):
        raise Unclear(
            f"Nothing says which targets of {code.name} are padding: no argument is a pad id, and "
            f"it leaves out neither -100 nor 0 nor 1. Say which argument it is with --argument "
            f"target_pad=NAME (in Python: arguments={{'target_pad': NAME}}); --anyway judges it by "
            f"a loss that leaves padding out."
        )
    shown = {axis: found.choices[axis] for axis in AXES}
    if found.rate == 0 or not found.smoothed:
        shown = {axis: one for axis, one in shown.items() if axis not in _OF_SMOOTHING}
    choices = declared_choices(shown, reading)
    limits = Limits(
        dropout=False,
        precisions=_precisions(build, found.call),
        smoothing=found.rate,
        pad=found.pad,
        padded_targets=not counts_all,
    )
    single = not found.exact and _rounds_to_single(build, found)
    if single:
        rest = tuple(one for one in limits.precisions if one != "float64")
        limits = replace(limits, precisions=rest)
    said = (*_said(code, found), *switch, *chosen(choices, reading))
    judged_as = f"{code.name} is judged as {COMPONENT}"
    guesses = (*assumed(choices, reading), *_padding(found), *[SINGLE] * single)
    return AdaptedLoss(
        name=code.name,
        title=f"{code.name}, read as {COMPONENT}",
        recipes={COMPONENT: Recipe(build, found.call)},
        choices=choices,
        limits=limits,
        code=code,
        call=found.call,
        given=given,
        understood=(judged_as, *guesses, *code.said, *said),
        assumed=guesses,
        summary=_summary(code, found.call, choices),
    )


_OF_SMOOTHING = ("smoothed_mass", "loss_measure")


class _Attempt(NamedTuple):
    """One way of calling a loss, the sizes that it is given, and what its numbers show."""

    call: LossCall
    given: dict[str, Any]
    build: Build
    known: frozenset[str]
    found: Measured | list[str]

    @property
    def is_certain(self) -> bool:
        return isinstance(self.found, Measured) and self.found.certain


def _attempted(
    code: Code, reading: Reading, declared: dict[str, Value]
) -> tuple[_Attempt, tuple[str, ...]]:
    """Return how a loss is called, and the words for an argument that turns smoothing on.

    An argument without a default that is named as a rate may be such a switch: it is taken for one
    where only then the numbers are those of the reference.
    """
    first = _attempt(code, reading, declared)
    words = tuple(
        f"{own} turns label smoothing on: judged as it is by default, without; --give {own}=True "
        f"judges it with smoothing"
        for own in switches(code, reading)
    )
    rate = next((own for own, size in first.call.sizes.items() if size == "smoothing"), "")
    if first.is_certain or not rate or rate in reading.arguments.values():
        return first, words
    turned = replace(reading, given={**reading.given, rate: True})
    second = _attempt(code, turned, declared)
    if not second.is_certain:
        return first, words
    return second, (*words, f"{rate} turns label smoothing on, as measured: it is given as True")


def _attempt(code: Code, reading: Reading, declared: dict[str, Value]) -> _Attempt:
    call, given = _call(code, reading)
    build = holding(code, call.sizes, given)
    known = frozenset([*code.known, *call.sizes.values()])
    return _Attempt(call, given, build, known, measured(build, call, known, declared))


def _rounds_to_single(build: Build, found: Measured) -> bool:
    """Say whether a loss in double precision computes with numbers of single precision."""
    given = case(rate=RATE if found.rate is None else found.rate, padding=True)
    output, target = torch.from_numpy(given.output), torch.from_numpy(given.target)
    with undisturbed():
        if found.call(build(given.sizes), output, target).dtype == torch.float32:
            return True
    return rounds_to_single(lambda: found.call(build(given.sizes), output, target))


def _call(code: Code, reading: Reading) -> tuple[LossCall, dict[str, Any]]:
    """Return the arguments of the call by their names, and those that are fixed."""
    sizes = sizes_given(code, reading)
    number, mask, lengths = extra(code, reading)
    rest = [
        one
        for own, one in code.signature.parameters.items()
        if own not in sizes and own not in (number, mask, lengths)
    ]
    signature = code.signature.replace(parameters=rest)
    words = {role: own for role, own in reading.arguments.items() if own not in sizes}
    plain = replace(reading, arguments=words)
    carried = arguments.read(code.name, COMPONENT, signature, plain)
    output, target = carried.roles["output"], carried.roles["target"]
    call = LossCall(output, target, sizes, number=number, mask=mask, lengths=lengths)
    return call, dict(carried.fixed)


def _question(
    code: Code,
    build: Build,
    call: LossCall,
    declared: dict[str, Value],
    refusals: Sequence[str],
) -> str:
    """Return what is asked where no option gives the numbers of a loss."""
    if shifts_itself(build, call, declared):
        return (
            f"{code.name} compares the output at each step with the target at the next one: it "
            f"shifts the target itself. If its caller gives it targets that are not shifted, judge "
            f"what it calls after the shift; if they are shifted, this is a mistake, and --choice "
            f"loss_input=.. --choice loss_normaliser=.. reports it."
        )
    return (
        f"{code.name} gives the loss of the reference under no option, even without padding and "
        f"smoothing. What was tried: {'; '.join(refusals)[:600]}. If an argument was taken for "
        f"another ({call.output} for the output, {call.target} for the target), say which is which "
        f"with --argument output=NAME and --argument target=NAME; --choice loss_input=.. --choice "
        f"loss_normaliser=.. declares what it takes and divides by, and it is judged by that."
    )


def _precisions(build: Build, call: LossCall) -> tuple[str, ...]:
    """Return the precisions in which a call answers at all."""
    given = case()

    def answers(name: str) -> bool:
        try:
            with undisturbed():
                output = torch.from_numpy(given.output).to(DTYPES[name])
                call(build(SIZES), output, torch.from_numpy(given.target))
        except Exception:  # code that a user wrote may raise anything
            return False
        return True

    return precisions_of(answers)


def _said(code: Code, found: Measured) -> Iterator[str]:
    """Yield how the loss is called, and what is not judged."""
    call = found.call
    roles = [f"output={call.output}", f"target={call.target}"]
    roles += [f"{own}={size}" for own, size in call.sizes.items()]
    roles += [f"{call.number} given as the number of targets that count"] * bool(call.number)
    roles += [f"{call.mask}: {call.form}"] * bool(call.mask)
    roles += [f"{call.lengths} given as the number of targets in each row"] * bool(call.lengths)
    yield f"arguments: {', '.join(roles)} (by the signature)"
    yield f"tensors: {WORDS[call.shape]} (as a probing call shows)"
    if found.rate is not None:
        rate = f"is always {found.rate:g}" if found.rate else "has no argument: it has none"
        yield f"its label smoothing {rate}"


def _padding(found: Measured) -> Iterator[str]:
    """Yield what padding is taken to be in code that takes no pad id."""
    if found.call.marker is not None:
        yield (
            f"assumed that its caller writes padding as {found.call.marker}, which it leaves out: "
            f"if its targets hold a pad id, padding counts, and this is a mistake"
        )
    if found.pad is not None:
        yield f"assumed that the pad id is always {found.pad}, which it leaves out"
    if found.counts_all:
        yield (
            "assumed that no target is padding: it has no argument for a pad id, and counts every "
            "word. If its targets hold padding, this is a mistake, and --strict asks about it"
        )


def _summary(code: Code, call: LossCall, choices: dict[str, Value]) -> str:
    """Return how a loss is built and called, in one line."""
    built = ""
    if code.construction is not None:
        built = f"({', '.join(code.construction.fillings)})"
    given = inspect.cleandoc(f"output={call.output}, target={call.target}")
    takes = f"{choices.get('loss_input')} by {choices.get('loss_normaliser')}"
    return f"{code.name}{built} called ({given}); {WORDS[call.shape]}; {takes}"
