"""The profile that the choices of a decoder-only model are nearest to."""

from collections.abc import Mapping

from attentest_spec.choices import Value
from attentest_spec.profiles import PROFILES


def nearest(choices: Mapping[str, Value]) -> str:
    """Return the name of the profile of decoder-only models with the fewest other choices."""
    models = [name for name, one in PROFILES.items() if one.whole == "language_model"]
    return min(models, key=lambda name: len(_others(choices, name)))


def spoken(choices: Mapping[str, Value], profile: str) -> str:
    """Return the name of the profile, and the choices that differ from those it has."""
    own = _others(choices, profile)
    own = {name: own[name] for name in sorted(own, key=_is_usual)}
    but = ", ".join(f"{name}={_shown(value)}" for name, value in own.items())
    return f"{profile} with {but}" if but else profile


def _is_usual(choice: str) -> bool:
    """Say whether another option of `choice` is seldom a mistake."""
    return choice not in ("rotary_direction", "norm_variance", "position_offset")


def _others(choices: Mapping[str, Value], profile: str) -> dict[str, Value]:
    """Return the choices that differ from those of `profile`, where it has one."""
    wanted = {name: PROFILES[profile].option(name) for name in choices}
    return {name: value for name, value in choices.items() if wanted[name] not in (None, value)}


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
