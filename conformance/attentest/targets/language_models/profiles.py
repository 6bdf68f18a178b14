"""The profile that the choices of a decoder-only model are nearest to."""

from collections.abc import Mapping

from attentest.analysis.identify.finding import same
from attentest_spec import Choices
from attentest_spec.choices import Value
from attentest_spec.profiles import PROFILES

_COMMON = (
    "norm_epsilon_place",
    "norm_variance",
    "query_key_norm_place",
    "rms_epsilon_place",
    "rms_weight",
)
"""The choices whose first option nearly all models have, whatever their profile leaves out."""


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
    return choice not in ("rotary_direction", "position_offset", *_COMMON)


def _others(choices: Mapping[str, Value], profile: str) -> dict[str, Value]:
    """Return the choices that differ from those of `profile`, where it has one."""
    wanted = {name: PROFILES[profile].option(name) for name in choices}
    common = Choices()
    wanted |= {one: getattr(common, one) for one in _COMMON if wanted.get(one, "") is None}
    return {
        name: value
        for name, value in choices.items()
        if wanted[name] is not None and value != "unspecified" and not same(value, wanted[name])
    }


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
