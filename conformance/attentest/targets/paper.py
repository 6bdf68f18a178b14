"""Targets that are design choices: a profile, built under its choices or under any others.

Such a target is the name of a profile, as `paper` or `llama`, and after it NAME=OPTION for every
choice that is another one: `paper norm_placement=pre`. It leads to a reference model of the
catalogue of faults.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from attentest_spec import CHOICES, Backend, Choices, registry
from attentest_spec.choices import Choice, Value
from attentest_spec.components import inside
from attentest_spec.names import require
from attentest_spec.profiles import PROFILES, Profile
from attentest_spec.registry import LoadFailure


def is_paper(target: str) -> bool:
    """Say whether `target` begins with the name of a profile.

    No announced backend can be loaded under this name.
    """
    return target.split()[:1] != [] and target.split()[0] in PROFILES


def choices_of(target: str) -> Choices:
    """Return the choices that `target` names, and those of its profile for the others.

    Raises UnknownName for a name that is no choice and for a word that is no option of it, and
    LoadFailure for a number that is not allowed, a choice that is named twice and an option alone.
    """
    pairs = list(_pairs(target))
    named = dict(pairs)
    for name in named:
        if [one for one, _ in pairs].count(name) > 1:
            raise LoadFailure(f"{target!r} names the choice {name} more than once.")
    try:
        return Choices.of({**_profile(target).choices, **named})
    except ValueError as wrong:
        raise LoadFailure(f"{target!r} cannot be built: {wrong}") from wrong


def load(target: str) -> Backend:
    """Return a reference model under the choices of `target`, with `target` as its name.

    Raises as :func:`choices_of` does, and LoadFailure where torch is not installed or an announced
    backend has the same name.
    """
    choices = choices_of(target)
    if target in registry.names():
        raise LoadFailure(
            f"The name {target} is that of an announced backend, and the word for the design "
            f"choices of {_profile(target).title}. Name the backend MODULE:OBJECT instead."
        )
    try:
        from attentest.faults.reference_models import Plain, reference_backend
    except ModuleNotFoundError as missing:
        raise LoadFailure(
            f"The target {target} is built with {missing.name}, which is not installed."
        ) from missing
    profile = _profile(target)
    title = ", ".join([profile.title, *target.split()[1:]])
    built = reference_backend(Plain, choices.as_dict(), target)
    parts = built.recipes
    if profile.whole != "model":
        parts = {name: one for name, one in parts.items() if name in inside(profile.whole)}
    return replace(built, title=title, profile=profile.name, recipes=parts)


def _profile(target: str) -> Profile:
    """Return the profile that `target` begins with."""
    return PROFILES[target.split()[0]]


def _pairs(target: str) -> Iterator[tuple[str, Value]]:
    """Yield the name and the option of every choice that is named."""
    for word in target.split()[1:]:
        name, sign, option = word.partition("=")
        if not sign and (meant := " or ".join(_meant(word))):
            raise LoadFailure(f"{target!r}: {word} is not of the form NAME=OPTION; write {meant}.")
        yield name, _option(CHOICES[require("choice", name, CHOICES)], option)


def _meant(word: str) -> Iterator[str]:
    """Yield NAME=OPTION for every option that is `word`, or whose choice is."""
    for choice in CHOICES.values():
        for option in choice.options:
            if word in (choice.name, option.name):
                yield f"{choice.name}={option.name}"


def _option(choice: Choice, text: str) -> Value:
    """Return the option `text`, a number where the choice takes one."""
    if choice.number:
        with suppress(ValueError):
            return float(text)
    names = [option.name for option in choice.options]
    allowed = [*names, choice.number] if choice.number else names
    return require(f"option of {choice.name}", text, allowed)
