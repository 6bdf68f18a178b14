"""Choices of code that declares none: those that its numbers show, and what is said of them."""

from collections.abc import Iterator, Mapping

from attentest.analysis.identify import Finding
from attentest.targets.adapt.reading import Reading
from attentest_spec import CHOICES
from attentest_spec.choices import Value

FIXED_DROPOUT = (
    "assumed that the rate of some dropout is fixed, as training at a rate of 0 shows: if it is "
    "meant to follow an argument, this is a mistake, and --strict reports it"
)


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
        if name not in reading.choices and paper not in (None, value):
            yield (
                f"assumed {name}={_shown(value)}, as measured: if you meant {paper} (the paper's), "
                f"this is a mistake, and --strict reports it"
            )


def chosen(declared: Mapping[str, Value], reading: Reading) -> Iterator[str]:
    """Yield what is declared by the user, and what the paper does not specify."""
    for name, value in declared.items():
        if name in reading.choices:
            yield f"{name}: {_shown(value)}, as you say"
        elif CHOICES[name].paper is None:
            yield f"{name}: {_shown(value)}, measured; the paper: silent"


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
