"""Tells RMS norms from layer norms inside of layers, by what they computed in one call."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
from torch import nn

from attentest.analysis.identify.norms import EPSILONS as EPSILONS_IN_USE
from attentest.targets.adapt.parameters.behaviour import Fired, Run
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.parameters.units import Unit
from attentest_spec import Choices
from attentest_spec.choices import Value
from attentest_spec.rms_norm import rms_norm
from attentest_spec.setting import Floats, Setting

LAYERED = ("residual", "encoder_layer", "decoder_layer", "encoder", "decoder", "model")
"""The components that hold norms of one kind."""

EPSILONS = 1e-3
"""Largest relative difference of an output that the epsilon of a norm can explain."""

_SINGLE = 1e-6
"""Largest relative difference of an output that single precision makes."""

RMS = "does not subtract the mean: it is an RMS norm"
"""The end of what is said of a layer norm that is an RMS norm by its numbers."""


def norm_kind(module: nn.Module, run: Run, units: Sequence[Unit]) -> str:
    """Return the kind of the norms that `module` called, "" for none, or for both kinds.

    What is named an RMS norm and is none by its numbers may be a mistaken one.
    """
    norms = {unit.path for unit in units if unit.kind == "norm"}
    kinds = {
        is_rms(fired) or _is_named_rms(module.get_submodule(fired.path))
        for fired in run.fired
        if fired.path in norms
    }
    return ("rms" if kinds.pop() else "layer") if len(kinds) == 1 else ""


def _is_named_rms(module: nn.Module) -> bool:
    return "rms" in type(module).__name__.lower()


def is_rms(fired: Fired) -> bool:
    """Say whether a module divides each row by the root of its mean square, without a mean."""
    if len(fired.inputs) != 1 or fired.inputs[0].shape != fired.output.shape:
        return False
    x, y = (one.reshape(-1, one.shape[-1]) for one in (fired.inputs[0], fired.output))
    if len(x) < 2 or x.shape[-1] < 2 or not (np.abs(x).min() > 0 < np.abs(y).min()):
        return False
    ratio = (y / x) / (y / x)[:1]
    wanted = np.sqrt(np.square(x[:1]).mean(-1) / np.square(x).mean(-1))[:, None]
    return bool(np.ptp(wanted) >= LOOSE and np.abs(ratio / wanted - 1).max() <= LOOSE)


def numbers_of_rms(fired: Fired, parameters: Mapping[str, Floats]) -> dict[str, Value]:
    """Return the epsilon and the use of the weight of an RMS norm; {} where none in use fits.

    A norm that computes in float32 gives the closest.
    """
    if len(fired.inputs) != 1 or fired.inputs[0].shape != fired.output.shape:
        return {}
    (x,) = fired.inputs

    def apart(choices: Choices) -> float:
        wanted = rms_norm(Setting(choices=choices, parameters=parameters), x)
        return float(np.abs(wanted - fired.output).max())

    tried: list[dict[str, Value]] = [
        {"rms_weight": weight, "rms_epsilon": epsilon}
        for weight, epsilon in product(("weight", "one-plus-weight"), EPSILONS_IN_USE)
    ]
    closest = min(tried, key=lambda one: apart(Choices.of(one)))
    fits = apart(Choices.of(closest)) <= _SINGLE * np.abs(fired.output).max()
    return closest if fits else {}


def is_layer_norm(fired: Fired) -> bool:
    """Say whether a module weights the columns of rows without their mean, divided by its spread.

    Each column of the result is a straight line over that column of the layer norm.
    """
    if len(fired.inputs) != 1 or fired.inputs[0].shape != fired.output.shape:
        return False
    x, y = (one.reshape(-1, one.shape[-1]) for one in (fired.inputs[0], fired.output))
    spread = x.std(-1, keepdims=True)
    if len(x) < 3 or x.shape[-1] < 2 or not spread.min() > 0:
        return False
    normed = (x - x.mean(-1, keepdims=True)) / spread
    for column, found in zip(normed.T, y.T, strict=True):
        line = np.stack([column, np.ones_like(column)], axis=-1)
        left = found - line @ np.linalg.lstsq(line, found)[0]
        if np.abs(left).max() > EPSILONS * np.abs(y).max():
            return False
    return True
