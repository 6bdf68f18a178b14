"""Sentences about inferred code: one line with what is sure, and the choices that were measured.

Code that declares no choices has those that its numbers show.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping

from attentest.analysis.identify import Finding
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.assumptions.arguments import Call, arguments_in, arguments_of
from attentest.targets.adapt.assumptions.denied import denied, denied_by_name
from attentest.targets.adapt.assumptions.epsilons import measured_epsilons
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.ungiven import ungiven_of
from attentest.targets.unjudged import names_alibi
from attentest_spec import CHOICES
from attentest_spec.choices import Value

IDLE_DROPOUT = (
    "assumed that its rate of dropout is meant for nothing here: in training, at a rate of 0.5, "
    "two calls give the same numbers; if it is meant to drop some, this is a mistake"
)
IN_SINGLE = (
    "assumed {}=float32, as measured: of float64 it keeps seven digits; if it is meant to keep "
    "all, this is a mistake; --choice {}=as-computed judges it"
)
UNBIASED = (
    "assumed norm_variance=unbiased, as measured: if you meant biased, as torch has it, this is a "
    "mistake; --choice norm_variance=biased"
)
NO_ALIBI = (
    "assumed that nothing is added to its scores by position, as measured, though its code names "
    "ALiBi: if they are meant to fall with the distance, this is a mistake"
)
NO_FINAL_NORM = (
    "assumed that no norm follows the last layer, as measured: stacks whose norms come before "
    "their sublayers usually end with one; if it is meant to have one, this is a mistake, and "
    "--choice final_norm=present reports it"
)
_WINDOWS = {"with-query": "its own among them", "beside-query": "besides its own"}
WINDOWED = (
    "assumed attention_window={}, as measured: a position sees as many as its window says, {}; if "
    "you meant them {}, this is a mistake, and --choice attention_window={} reports it"
)
_IN_SINGLE = (("rms_arithmetic", "float32"), ("routing_arithmetic", "float32"))
MOST = 6
"""The largest number of parameters that are named; more are counted."""

MOST_SWITCHES = 3
"""The largest number of switches that are named."""


def guess_of(code: Code) -> str:
    """Return by what `code` was taken for its component."""
    return f" (by {'its layers' if code.inner else 'a part of its name'}, and by its numbers)"


def measured(findings: Mapping[str, Finding]) -> dict[str, Value]:
    """Return the options that the numbers show."""
    return {
        name: one.measured
        for name, one in findings.items()
        if one.measured is not None and not _exact_enough(name, one.measured)
    }


def _exact_enough(name: str, value: Value) -> bool:
    """Say whether a finite fill leaves no weight at any score that is judged: one is exact, then.

    Scores go up to a million where exact masks are declared, and as far as the fill where it is.
    """
    return name == "mask_fill" and isinstance(value, float) and value <= -1e8


def declared_choices(inferred: Mapping[str, Value], reading: Reading) -> dict[str, Value]:
    """Return what is judged: what the user says, and what is `inferred` unless that is strict.

    A strict reading takes the paper's options wherever the paper has one.
    """
    kept = {
        name: value
        for name, value in inferred.items()
        if not reading.strict or CHOICES[name].paper is None
    }
    return {**kept, **reading.choices}


def assumed(
    declared: Mapping[str, Value], reading: Reading, denials: Mapping[str, str] | None = None
) -> Iterator[str]:
    """Yield the choices that were inferred and are not the paper's, with the consequence.

    `denials` are what an argument denies, by the choice.
    """
    for name, value in declared.items():
        paper = CHOICES[name].paper
        if name in reading.choices:
            continue
        if denials and name in denials:
            yield denials[name]
        elif (name, value) == ("norm_variance", "unbiased"):
            yield UNBIASED
        elif name == "attention_window" and value in _WINDOWS:
            (other,) = _WINDOWS.keys() - {value}
            yield WINDOWED.format(value, _WINDOWS[str(value)], _WINDOWS[other], other)
        elif paper is None and (name, value) in _IN_SINGLE:
            yield IN_SINGLE.format(name, name)
        elif paper not in (None, value):
            yield (
                f"assumed {name}={_shown(value)}, as measured: if you meant {paper} (the paper's), "
                f"this is a mistake, and --strict reports it"
            )
    ends = declared.get("norm_placement"), declared.get("final_norm")
    if ends == ("pre", "none") and "final_norm" not in reading.choices:
        yield NO_FINAL_NORM


def assumed_of_code(declared: Mapping[str, Value], reading: Reading, code: Code) -> Iterator[str]:
    """Yield what is assumed of the choices of a component.

    No argument of the code denies what is decided around it, as the base of tables that are given.
    """
    decided = code.wrapper.decides if code.wrapper is not None else ()
    own = {name: value for name, value in declared.items() if name not in decided}
    denials = dict(denied(own, code.component, arguments_of(code, reading)))
    if code.component == "feed_forward":
        denials |= dict(denied_by_name(own, code.name))
    return assumed(declared, reading, denials)


def assumed_of_call(
    declared: Mapping[str, Value], reading: Reading, component: str, building: Call
) -> list[str]:
    """Return what is assumed of the choices of a model that a call builds."""
    arguments = arguments_in(building)
    denials = dict(denied(declared, component, arguments))
    return [
        *assumed(declared, reading, denials),
        *measured_epsilons(declared, reading, arguments),
    ]


def denied_by_call(
    declared: Mapping[str, Value], reading: Reading, component: str, building: Call
) -> list[str]:
    """Return the measured choices of a model that an argument of the call that builds it denies."""
    arguments = arguments_in(building)
    denials = dict(denied(declared, component, arguments))
    return [*denials.values(), *measured_epsilons(declared, reading, arguments)]


def unusual(declared: Mapping[str, Value], reading: Reading, code: Code) -> Iterator[str]:
    """Yield what the numbers show and names or habit deny: epsilons, and biases of zero."""
    yield from measured_epsilons(declared, reading, arguments_of(code, reading))
    if declared.get("relative_bias", "") == "none" and names_alibi(code.thing):
        yield NO_ALIBI


def chosen(declared: Mapping[str, Value], reading: Reading) -> Iterator[str]:
    """Yield what is declared by the user, and what the paper does not specify."""
    for name, value in declared.items():
        if name in reading.choices:
            yield f"{name}: {_shown(value)}, as you say"
        elif CHOICES[name].paper is None:
            yield f"{name}: {_shown(value)}, measured; the paper: silent"


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def summary(code: Code, adapter: Adapter, parameters: Mapping[str, object] | None = None) -> str:
    """Return how `code` is built and called, its mask and its parameters, in one line."""
    built = ""
    if code.construction is not None:
        built = f"({', '.join(code.construction.fillings)})"
    carried = adapter.arguments
    called = ", ".join([*pairs(carried.roles.items()), *carried.computed, *carried.repeated])
    masks = dict.fromkeys(one.words.partition(";")[0] for one in adapter.styles.values())
    call, missing = f"{code.name}{built} called ({called})", ungiven_of(adapter)
    said = [missing, *masks, *named(parameters or {}), switched_off(code)]
    return "; ".join([call, *filter(None, said)])


def switched_off(code: Code) -> str:
    """Return which switches of a constructor are off, as they are by default, "" for none.

    What they switch on is not judged.
    """
    if code.construction is None or not inspect.isclass(code.thing):
        return ""
    given = code.construction.fillings
    own = inspect.signature(code.thing).parameters
    off = [name for name, one in own.items() if one.default is False and name not in given]
    more = " .." if len(off) > MOST_SWITCHES else ""
    return f"off by default: {', '.join(off[:MOST_SWITCHES])}{more}" if off else ""


def pairs(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return each name with what it is called here, once where both are the same."""
    return [own if own == name else f"{name}={own}" for name, own in items]


def named(parameters: Mapping[str, object]) -> list[str]:
    """Return a phrase with the parameters, as far as they are few and have names; none for none."""
    own = [one for one in parameters.values() if isinstance(one, str)]
    if not parameters:
        return []
    few = len(own) == len(parameters) <= MOST
    return [f"weights {', '.join(own)}" if few else f"{len(parameters)} parameters by name"]
