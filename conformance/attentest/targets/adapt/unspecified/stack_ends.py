"""Stacks that scale their input, or return another sum than the output of their last layer."""

from collections.abc import Iterator
from math import sqrt

import numpy as np
from torch import nn

from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.found import Observed
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest_spec.setting import Floats

_STACKS = ("encoder", "decoder")


def scaled_or_combined(seen: Observed, component: str) -> str:
    """Return what a stack does before its first layer or after its last one, "" for nothing."""
    if component not in _STACKS or not seen.run.samples:
        return ""
    return _scaled(seen) or _combined(seen)


def _scaled(seen: Observed) -> str:
    """Recognise a first layer that gets the input of the stack times a number."""
    x = seen.run.samples[0].inputs[0]
    fired = {one.path: one for one in seen.run.fired}
    for path in filter(None, seen.run.order):
        one = fired.get(path)
        if x is None or one is None or not one.inputs:
            continue
        factor = _factor(one.inputs[0], x)
        if factor is None:
            return ""
        if abs(factor - 1) > LOOSE:
            root = sqrt(seen.sizes.d_model)
            words = " (the root of d_model)" if abs(factor - root) <= LOOSE * root else ""
            return (
                f"it multiplies its input by {factor:.4g}{words}: the scale is that of an "
                f"embedding, and its layers can be judged one by one"
            )
        if one.output.shape != one.inputs[0].shape or not _is_near(one.output, one.inputs[0]):
            return ""
    return ""


def _combined(seen: Observed) -> str:
    """Recognise a sum of the outputs of several layers in the place of that of the last one."""
    layers = _layers(seen)
    if len(layers) < 2:
        return ""
    outputs = np.stack([one.output.ravel() for one in layers], axis=1)
    for last in _ends(seen, layers):
        if last.shape != layers[-1].output.shape or not np.isfinite(outputs).all():
            continue
        shares, *_ = np.linalg.lstsq(outputs, last.ravel(), rcond=None)
        used = int((np.abs(shares) > LOOSE).sum())
        if used > 1 and _is_near(outputs @ shares, last.ravel()):
            words = ", ".join(f"{share:.3g}" for share in shares)
            return (
                f"it returns the sum of the outputs of its layers times {words}, and not the "
                f"output of the last one: its layers can be judged one by one"
            )
    return ""


def _layers(seen: Observed) -> list[Fired]:
    """Return the calls of the layers: the outermost list of modules that are called in turn."""
    fired = {one.path: one for one in seen.run.fired}
    for path, module in seen.module.named_modules():
        if isinstance(module, nn.ModuleList):
            names = [f"{path}.{own}".lstrip(".") for own, _ in module.named_children()]
            found = [fired[name] for name in names if name in fired]
            if len(found) == len(names) and len({one.output.shape for one in found}) == 1:
                return found
    return []


def _ends(seen: Observed, layers: list[Fired]) -> Iterator[Floats]:
    """Yield what may be the end: what modules behind the last layer get, and the output."""
    order = seen.run.order
    after = order[order.index(layers[-1].path) :]
    for one in seen.run.fired:
        inside = any(one.path.startswith(f"{layer.path}.") for layer in layers)
        if one.path in after and one not in layers and not inside and one.inputs:
            yield one.inputs[0]
    output = seen.run.samples[0].output
    yield output
    yield output.swapaxes(0, 1)


def _factor(entered: Floats, x: Floats) -> float | None:
    """Return the number by which `x` is multiplied in `entered`, in either layout."""
    for one in (x, x.swapaxes(0, 1)):
        if entered.shape == one.shape:
            factor = float((entered * one).sum() / np.square(one).sum())
            if abs(factor) > LOOSE and _is_near(entered, factor * one):
                return factor
    return None


def _is_near(one: Floats, other: Floats) -> bool:
    return bool(np.abs(one - other).max() <= LOOSE * np.abs(other).max())
