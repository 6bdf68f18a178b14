"""Sentences about arguments that say one option of a choice where the numbers show another one."""

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import ACTIVATION, words
from attentest_spec import CHOICES
from attentest_spec.choices import Value

DENIED = (
    "assumed {choice}={found}, as measured, though the argument {own} is {given}: a mistake if "
    "that is meant; --choice {choice}={option} judges it"
)

_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    "relu": ("relu",),
    "gelu": ("gelu", "gelu-tanh", "gelu-sigmoid"),
    "gelunew": ("gelu-tanh",),
    "gelutanh": ("gelu-tanh",),
    "gelupytorchtanh": ("gelu-tanh",),
    "quickgelu": ("gelu-sigmoid",),
    "silu": ("silu",),
    "swish": ("silu",),
}
"""The options that an activation of a name may be, the likeliest first."""

_PRE = words("normfirst prenorm preln normbefore normalizebefore layernormfirst dolayernormbefore")
_POST = words("postnorm postln")
_BIAS = words("bias usebias")
_BASE = words("ropetheta ropebase rotarybase rotarytheta")

_BIASES: Mapping[str, str] = {
    "feed_forward": "feed_forward_bias",
    "multi_head_attention": "projection_bias",
    "layer_norm": "norm_bias",
    "rms_norm": "rms_bias",
}
"""The choice that an argument about biases is about, by the component that has no part."""


def denied(
    declared: Mapping[str, Value], component: str, arguments: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield each measured choice that an argument denies, with the sentence about it."""
    said: dict[str, str] = {}
    for own, given in arguments.items():
        choice, options = _says(squashed(own.rpartition(".")[2]), given, component)
        found = declared.get(choice)
        if found is None or not options or found in options or choice in said:
            continue
        said[choice] = DENIED.format(
            choice=choice, found=_shown(found), own=own, given=_shown(given), option=options[0]
        )
    yield from said.items()


NAMED = (
    "assumed {choice}={found}, as measured, though the name {own} says {option}: a mistake if that "
    "is meant; --choice {choice}={option} judges it"
)

_GATED: Mapping[str, tuple[str, ...]] = {
    "swiglu": ("silu",),
    "geglu": ("gelu", "gelu-tanh", "gelu-sigmoid"),
    "reglu": ("relu",),
}
"""The activation of a gated network by what its name holds."""


def denied_by_name(declared: Mapping[str, Value], own: str) -> Iterator[tuple[str, str]]:
    """Yield each measured choice of a gated network that its name denies, with a sentence on it."""
    name = squashed(own)
    if "feed_forward_gate" not in declared and "activation" not in declared:
        return
    for part, activations in _GATED.items():
        if part not in name:
            continue
        known = {"activation": activations, "feed_forward_gate": ("gated",)}
        for choice, options in known.items():
            found = declared.get(choice, CHOICES[choice].paper)
            if found not in options:
                said = NAMED.format(choice=choice, found=found, own=own, option=options[0])
                yield choice, said


def _says(name: str, given: object, component: str) -> tuple[str, tuple[Value, ...]]:
    """Return the choice that an argument is about, and the options that its value says."""
    if name in ACTIVATION:
        return "activation", _ACTIVATIONS.get(squashed(_shown(given)), ())
    if name in _BASE and isinstance(given, int | float):
        return "rotary_base", (f"{given:g}", float(given))
    if not isinstance(given, bool):
        return "", ()
    if name in _PRE or name in _POST:
        return "norm_placement", ("pre" if given == (name in _PRE) else "post",)
    if name in _BIAS and component in _BIASES:
        return _BIASES[component], _biases(given, component)
    return "", ()


def _biases(given: bool, component: str) -> tuple[str, ...]:
    """Return the options of an argument about biases; without them no option has any."""
    if given:
        return ("present", "output-alone", "all-but-key", "all-but-output")
    return ("none",)


def _shown(given: Any) -> str:
    """Return a value in one word: functions and classes by their names."""
    if isinstance(given, float):
        return f"{given:g}"
    kind = type(given).__name__ if isinstance(given, nn.Module) else given
    return str(getattr(given, "__name__", kind))
