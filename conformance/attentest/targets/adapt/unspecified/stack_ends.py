"""Stacks that change what enters layers, passes between them or leaves them, or call them again."""

from collections.abc import Iterator
from itertools import pairwise
from math import sqrt

import numpy as np
from torch import nn

from attentest.targets.adapt.parameters.behaviour import Fired
from attentest.targets.adapt.parameters.found import Observed
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest_spec.setting import Floats

_STACKS = ("encoder", "decoder")
_LAYERS = ("encoder_layer", "decoder_layer")


def changed_around_layers(seen: Observed, component: str) -> str:
    """Return what a stack does before, between or after its layers, "" for nothing.

    Of a layer, it is what it does before its sublayers.
    """
    if component not in (*_STACKS, *_LAYERS) or not seen.run.samples:
        return ""
    if component in _LAYERS:
        return _shifted(seen)
    return _shifted(seen) or _repeated(seen) or _scaled(seen) or _combined(seen) or _added(seen)


def _shifted(seen: Observed) -> str:
    """Recognise a module that gets some columns of another position, as a token shift gives them.

    The columns are those of the input, or of what the module before it returns.
    """
    before = seen.run.samples[0].inputs[0]
    fired = {one.path: one for one in seen.run.fired}
    for path in filter(None, seen.run.order):
        one = fired.get(path)
        if before is None or one is None or not one.inputs:
            return ""
        for own in (before, before.swapaxes(0, 1)):
            if one.inputs[0].shape == own.shape and (columns := _moved(one.inputs[0], own)):
                return (
                    f"{columns} of {own.shape[-1]} columns that {path} gets are those of another "
                    f"position, as a token shift moves them"
                )
        if one.inputs[0].shape != before.shape or one.output.shape != before.shape:
            continue
        before = one.output
    return ""


def _moved(entered: Floats, own: Floats) -> int:
    """Return how many columns are those of the position before or behind; 0 if any is neither."""
    moved = 0
    for column in range(own.shape[-1]):
        given, kept = entered[..., column], own[..., column]
        if np.array_equal(given, kept):
            continue
        along = [axis for axis in range(2) if kept.shape[axis] > 1]
        if not any(_is_moved(given.swapaxes(0, axis), kept.swapaxes(0, axis)) for axis in along):
            return 0
        moved += 1
    return moved


def _is_moved(given: Floats, kept: Floats) -> bool:
    """Say whether rows are those before or behind them, whatever the first or the last one is."""
    later, earlier = np.array_equal(given[1:], kept[:-1]), np.array_equal(given[:-1], kept[1:])
    return later or earlier


def _repeated(seen: Observed) -> str:
    """Recognise a stack that calls each of its layers several times."""
    layers = _layers(seen)
    times = {seen.run.order.count(one.path) for one in layers}
    number = times.pop() if len(times) == 1 else 1
    if number < 2:
        return ""
    return (
        f"it calls each of its {len(layers)} layers {number} times, as stacks do that share their "
        f"parameters: the class of a layer can be judged alone"
    )


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


def _added(seen: Observed) -> str:
    """Recognise a layer that gets the output of the one before it plus something else.

    That is the input of the stack, or numbers that are the same for each text, such as positions.
    """
    layers = _layers(seen)
    x = seen.run.samples[0].inputs[0]
    if len(layers) < 2 or x is None or _adds_residuals(seen, layers):
        return ""
    for before, layer in pairwise(layers):
        if not layer.inputs or layer.inputs[0].shape != before.output.shape:
            return ""
        entered, output = layer.inputs[0], before.output
        if _is_near(entered, output):
            continue
        axis = 0 if x.shape == entered.shape else 1  # (L, B, D) where batches come second
        words = _sum(entered, output, x if axis == 0 else x.swapaxes(0, 1), axis)
        return words and (
            f"{layer.path} gets {words.format(before.path)}, and not that output alone: its layers "
            f"can be judged one by one"
        )
    return ""


def _sum(entered: Floats, output: Floats, x: Floats, batch: int) -> str:
    """Return which sum of `output`, `x` and the same for each text `entered` is, "" for none."""
    if x.shape != entered.shape or not all(np.isfinite(one).all() for one in (entered, output)):
        return ""
    parts = np.stack([_centred(one, batch).ravel() for one in (output, x)], axis=1)
    wanted = _centred(entered, batch).ravel()
    (share, of_input), *_ = np.linalg.lstsq(parts, wanted, rcond=None)
    if abs(share) <= LOOSE or not _is_near(parts @ (share, of_input), wanted):
        return ""
    rest = entered - share * output - of_input * x
    words = f"{_times(share)}the output of {{}}"
    if abs(of_input) > LOOSE:
        words += f" plus {_times(of_input)}the input of the first layer"
    if np.abs(rest).max() > LOOSE * np.abs(entered).max():
        words += " plus the same numbers for each text, such as an embedding"
    return words


def _adds_residuals(seen: Observed, layers: list[Fired]) -> bool:
    """Say whether the stack adds the input of its last layer to the output of that."""
    last = layers[-1]
    if not last.inputs or last.inputs[0].shape != last.output.shape:
        return True
    whole = last.inputs[0] + last.output
    return any(end.shape == whole.shape and _is_near(end, whole) for end in _ends(seen, layers))


def _times(factor: float) -> str:
    return "" if abs(factor - 1) <= LOOSE else f"{factor:.3g} times "


def _centred(numbers: Floats, axis: int) -> Floats:
    return np.asarray(numbers - numbers.mean(axis=axis, keepdims=True))


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
