"""Switches that nothing says, where a mistake is read that one of them may make."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from attentest.targets.adapt.reading import Attempt, Reading, Unclear
from attentest.targets.language_models.construction.building import Build
from attentest.targets.language_models.inference import Inferred, infer

_ASSUMED = re.compile(r"assumed (\w+)=(True|False), (?:a switch that|which) nothing says")


def demand_said_switches(
    inferred: Inferred, thing: Callable[..., Any], name: str, reading: Reading, build: Build
) -> None:
    """Raise Unclear for a mistake that a model with other values of assumed switches has not."""
    found = [one.groups() for one in map(_ASSUMED.match, inferred.building.doubts) if one]
    for own, value in found if inferred.mistake else ():
        other = value == "False"
        try:
            given = replace(reading, given={**reading.given, own: other})
            mistaken = infer(thing, name, given, build).mistake is not None
        except Unclear:
            mistaken = True
        if not mistaken and inferred.mistake:
            raise Unclear(
                f"{name} computes {inferred.mistake.words} with {own}={value}, which nothing says, "
                f"and the numbers of the reference without it. --give {own}={other} (in Python: "
                f"given={{{own!r}: {other}}}) judges it with that.",
                attempts=[Attempt(given={own: other})],
                built=True,
            )
