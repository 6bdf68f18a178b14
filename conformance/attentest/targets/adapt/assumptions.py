"""Sentences about inferred code: one line with what is sure, and the choices that were measured.

Code that declares no choices has those that its numbers show.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import isclose

from attentest.analysis.identify import Finding
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import EPSILON
from attentest.targets.adapt.reading import Reading
from attentest.targets.adapt.ungiven import ungiven_of
from attentest.targets.signatures import constructor_arguments
from attentest.targets.unjudged import names_alibi
from attentest_spec import CHOICES
from attentest_spec.choices import Value

FIXED_DROPOUT = (
    "assumed that the rate of some dropout is fixed, as training at a rate of 0 shows: if it is "
    "meant to follow an argument, this is a mistake, and --strict reports it"
)
IDLE_DROPOUT = (
    "assumed that its rate of dropout is meant for nothing here: in training, at a rate of 0.5, "
    "two calls give the same numbers; if it is meant to drop some, this is a mistake"
)
OWN_EPSILON = (
    "assumed {}=1e-06: its default, None, is another epsilon in every precision, as torch has it, "
    "and this spec has one for all; --give {}=VALUE sets it"
)
UNBIASED = (
    "assumed norm_variance=unbiased, as measured: if you meant biased, as torch has it, this is a "
    "mistake; --choice norm_variance=biased"
)
NO_ALIBI = (
    "assumed that nothing is added to its scores by position, as measured, though its code names "
    "ALiBi: if they are meant to fall with the distance, this is a mistake"
)
USUAL_EPSILONS = (1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-12)
"""The epsilons of norms that libraries have as defaults."""
UNUSUAL_EPSILON = (
    "assumed {}={:.4g}, as measured: if you meant {:g}, as torch has it, this is a mistake; "
    "--choice {}=NUMBER judges another"
)
MOST = 6
"""The largest number of parameters that are named; more are counted."""


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


def assumed(declared: Mapping[str, Value], reading: Reading) -> Iterator[str]:
    """Yield the choices that were inferred and are not the paper's, with the consequence."""
    for name, value in declared.items():
        paper = CHOICES[name].paper
        if name in reading.choices:
            continue
        if (name, value) == ("norm_variance", "unbiased"):
            yield UNBIASED
        elif paper not in (None, value):
            yield (
                f"assumed {name}={_shown(value)}, as measured: if you meant {paper} (the paper's), "
                f"this is a mistake, and --strict reports it"
            )


def epsilon_given(code: Code, reading: Reading) -> Iterator[str]:
    """Yield that an epsilon is given where the default is None, and the user says nothing."""
    held = constructor_arguments(code.thing) if code.construction is not None else {}
    for own, parameter in held.items():
        if (
            code.component == "rms_norm"
            and squashed(own) in EPSILON
            and parameter.default is None
            and own not in reading.given
        ):
            yield OWN_EPSILON.format(own, own)


def unusual(declared: Mapping[str, Value], reading: Reading, code: Code) -> Iterator[str]:
    """Yield what the numbers show and names or habit deny: epsilons, and biases of zero."""
    yield from _unusual_epsilons(declared, reading, code)
    if declared.get("relative_bias", "") == "none" and names_alibi(code.thing):
        yield NO_ALIBI


def _unusual_epsilons(declared: Mapping[str, Value], reading: Reading, code: Code) -> Iterator[str]:
    """Yield each measured epsilon of a norm that is no usual value and no default of `code`."""
    held = constructor_arguments(code.thing) if code.construction is not None else {}
    named = [held[own].default for own in held if squashed(own) in EPSILON]
    known = [one for one in (*USUAL_EPSILONS, *named) if isinstance(one, float)]
    for name in ("norm_epsilon", "rms_epsilon"):
        value = declared.get(name)
        if not isinstance(value, float) or name in reading.choices or value == 0:
            continue
        if not any(isclose(value, one, rel_tol=0.01) for one in known):
            yield UNUSUAL_EPSILON.format(name, value, 1e-5, name)


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
    return "; ".join([call, *[missing] * bool(missing), *masks, *named(parameters or {})])


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
