"""Norms among the numbers of a call: of which kind, with which epsilon, weight and bias."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from attentest.targets.language_models.numbers.constants import EPSILONS
from attentest.targets.language_models.numbers.findings import Found, State
from attentest.targets.language_models.numbers.places import View
from attentest.targets.language_models.numbers.reader import Reader
from attentest_spec import CHOICES, Choices
from attentest_spec.choices import Value
from attentest_spec.norm import norm
from attentest_spec.setting import Floats, Setting

Options = dict[str, Value]
Views = dict[str, View]


def norms(reader: Reader, found: Found, path: str, x: Floats) -> Iterator[State]:
    """Yield what follows if x (B, T, D) is normalised by the norm at the canonical `path`.

    The first norm of a model decides which options all others have.
    """
    known = {name: one for name, one in found.choices.items() if name in _NAMES}
    for options, views, y in reader.once("norm", x, known, partial(_searched, reader, known, x)):
        held = {f"{path}.{name}": one for name, one in views.items()}
        after = None if found.uses(views.values()) else found.but(options, held)
        if after:
            yield State(after, y)


def _searched(reader: Reader, known: Options, x: Floats) -> Iterator[tuple[Options, Views, Floats]]:
    for options in kinds(reader, known):
        chosen = Choices.of({**reader.declared, **options})
        rows = _normed(reader, bare(reader, chosen, x.shape[-1]), x)
        for views in parameters(reader, options, rows):
            values = {name: one.values for name, one in views.items()}
            y = _normed(reader, Setting(reader.sizes, chosen, values), x)
            if reader.holds(y):
                yield options, views, y


def _normed(reader: Reader, given: Setting, x: Floats) -> Floats:
    """Return the norm of x (B, T, D), with the mistake that numbers are read with."""
    if not _is_deviating(reader):
        return norm(given, x)
    centred = x - x.mean(axis=-1, keepdims=True)
    unbiased = given.choices.norm_variance == "unbiased"
    squares = np.square(centred).sum(axis=-1, keepdims=True) / (x.shape[-1] - unbiased)
    epsilon = float(given.choices.norm_epsilon)
    outside = given.choices.norm_epsilon_place == "added-to-deviation"
    root = np.sqrt(np.sqrt(squares) + (0.0 if outside else epsilon))
    divisor = root + (epsilon if outside else 0.0)
    scaled: Floats = given["gain"] * centred / divisor
    bias = given.get("bias")
    return scaled if bias is None else scaled + bias


def _is_deviating(reader: Reader) -> bool:
    return reader.mistaken is not None and reader.mistaken.deviating


def bare(reader: Reader, choices: Choices, width: int) -> Setting:
    """Return the setting of a norm of `width` columns whose weight and bias change nothing."""
    one = 0.0 if choices.rms_weight == "one-plus-weight" and choices.norm_kind == "rms" else 1.0
    return Setting(reader.sizes, choices, {"gain": np.full(width, one)})


def left_out(reader: Reader, found: Found, path: str, x: Floats, other: str) -> Iterator[State]:
    """Yield x (B, T, D) with a norm that the call holds and does not use at the canonical `path`.

    It has the norm at the path `other` in its place, or none where that is "".
    """
    views = {name: one for name, one in found.views.items() if other and name.startswith(other)}
    values = {name.removeprefix(f"{other}."): one.values for name, one in views.items()}
    chosen = Choices.of({**reader.declared, **found.choices})
    y = norm(Setting(reader.sizes, chosen, values), x) if values else x
    free = [one for one in reader.rows(x.shape[-1]) if one.name in reader.idle]
    free = [one for one in free if not one.place.part and not found.uses([one])]
    biases = [one for one in free if says_bias(one.name)]
    gains = [one for one in free if one not in biases]
    held = {f"{path}.{name}": one[0] for name, one in (("gain", gains), ("bias", biases)) if one}
    if held:
        yield State(replace(found, views={**found.views, **held}), y)


def says_bias(name: str) -> bool:
    """Say whether the name of a parameter of a norm is that of its bias."""
    return name.rpartition(".")[2] in ("bias", "beta", "b", "shift", "b_2")


def kinds(reader: Reader, known: Mapping[str, Value]) -> Iterator[Options]:
    """Yield the options of the norm that the choices `known` leave."""
    for kind, (prefix, names) in _OPTIONS.items():
        if known.get("norm_kind", kind) != kind or (kind == "rms" and _is_deviating(reader)):
            continue
        tried = [[known[one]] if one in known else _values(reader, one) for one in (*names, prefix)]
        for values in product(*tried):
            found = {"norm_kind": kind, **dict(zip((*names, prefix), values, strict=True))}
            if not _MISPLACED.items() <= found.items() or _MISPLACED.items() <= known.items():
                yield found


_OPTIONS = {
    "layer": ("norm_epsilon", ("norm_bias", "norm_epsilon_place", "norm_variance")),
    "rms": ("rms_epsilon", ("rms_bias", "rms_weight", "rms_epsilon_place")),
}
"""The choices of each kind of norm, its epsilon apart."""

_MISPLACED: Options = {"rms_weight": "none", "rms_bias": "present"}
"""A weight that is added, where it should multiply: a norm with a bias alone is no design."""

_NAMES = {"norm_kind", *(one for prefix, names in _OPTIONS.values() for one in (prefix, *names))}


def _values(reader: Reader, name: str) -> list[Value]:
    if name.endswith("_epsilon"):
        small = [one for one in reader.constants if 0 < one < 1e-2]
        return list(dict.fromkeys([*small, *EPSILONS]))
    found: list[Value] = [one.name for one in CHOICES[name].options]
    # A bias is part of the norm wherever the sum is computed.
    return sorted(found, key=lambda one: one != "present") if name.endswith("_bias") else found


def parameters(reader: Reader, options: Options, normalised: Floats) -> Iterator[Views]:
    """Yield the parameters with which the call may compute a norm under `options`.

    `normalised` (.., D) are the rows without weight and bias. The sum of all numbers rules most
    parameters out, for all of them at once.
    """
    width = normalised.shape[-1]
    whole = [one for one in reader.rows(width) if not one.place.part and not one.place.span]
    gains: list[View | None] = [None] if options.get("rms_weight") == "none" else [*whole]
    if options.get("norm_kind") == "layer":  # a gain may be stored minus 1
        gains += [View(replace(one.place, plus=1.0), one.values + 1) for one in whole]
    has_bias = options.get("norm_bias", options.get("rms_bias")) == "present"
    biases: list[View | None] = [*whole] if has_bias else [None]
    if not gains or not biases:
        return
    weights = _stacked(gains, width, 1.0)
    if options.get("rms_weight") == "one-plus-weight":
        weights = weights + 1
    shifts = _stacked(biases, width, 0.0)
    columns = normalised.reshape(-1, width)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = (weights @ columns.sum(axis=0))[:, None] + len(columns) * shifts.sum(axis=1)
    scale = np.abs(normalised).max() * np.abs(weights).max(axis=1)
    largest = scale[:, None] + np.abs(shifts).max(axis=1)
    for at, to in np.argwhere(reader.trace.may_hold(normalised.size, sums, largest)):
        gain, bias = gains[at], biases[to]
        if bias is None or bias is not gain:
            held = {"gain": gain, "bias": bias}
            yield {name: one for name, one in held.items() if one is not None}


def _stacked(views: list[View | None], width: int, default: float) -> Floats:
    """Return the numbers of the views (N, D), `default` for None."""
    rows = [np.full(width, default) if one is None else one.values for one in views]
    return np.stack(rows)
