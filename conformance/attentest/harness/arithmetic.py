"""The precision that a part computes in, inside: some parts round to float32 whatever it is."""

from attentest.harness.subject import Probe
from attentest_spec import Choices
from attentest_spec.components import inside


def arithmetic(probe: Probe, choices: Choices | None = None) -> str:
    """Return the coarsest precision inside a part, under the declared choices unless given others.

    A softmax or an RMS norm in float32 rounds what is float64 around it.
    """
    chosen = choices or probe.subject.choices
    single = [part for axis, part in SINGLE.items() if chosen[axis] == "float32"]
    if "rms_norm" in single:
        if chosen.query_key_norm in ("per-head", "whole-projection"):
            single.append("multi_head_attention")
        if probe.component != "rms_norm" and chosen.norm_kind != "rms":
            single.remove("rms_norm")  # the norms of layers are layer norms
    rounds = probe.precision == "float64" and not inside(probe.component).isdisjoint(single)
    return "float32" if rounds else probe.precision


SINGLE = {
    "softmax_arithmetic": "attention",
    "rms_arithmetic": "rms_norm",
    "routing_arithmetic": "mixture_of_experts",
}
"""Choices by which a part rounds to float32 inside, each with that part."""


def unrounded(choices: Choices) -> Choices:
    """Return `choices` with no part that rounds to float32 inside."""
    return choices.but(**dict.fromkeys(SINGLE, "as-computed"))
