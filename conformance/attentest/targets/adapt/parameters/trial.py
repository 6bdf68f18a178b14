"""Tries tables against the oracle: where names and shapes leave several, the numbers choose."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import product
from operator import ne

import numpy as np

from attentest.targets.adapt.parameters.behaviour import BATCH, Fired, Run, Sample
from attentest_spec import Choices, Setting, Sizes
from attentest_spec.choices import CHOICES, Value
from attentest_spec.mapping import Place, Table, locate
from attentest_spec.oracles import ORACLES
from attentest_spec.parameters import learned_positions, shapes
from attentest_spec.setting import Floats

EXACT, LOOSE = 1e-8, 1e-4
"""Largest relative differences: of one formula, and of one whose epsilon is not known."""

_OPEN: Mapping[str, tuple[str, ...]] = {
    "feed_forward": ("activation",),
    "mixture_of_experts": (
        "router_scores",
        "routing_weights",
        "router_bias",
        "routing_scale",
        "activation",
    ),
    "embedding": ("embedding_scale",),
    "generator": ("output", "logit_scale"),
    "positional_encoding": ("positional_encoding",),
    "layer_norm": ("norm_variance",),
    "rms_norm": ("rms_weight",),
    "residual": ("norm_placement", "norm_variance"),
    "encoder_layer": ("norm_placement", "norm_variance", "activation"),
    "decoder_layer": ("norm_placement", "norm_variance", "activation"),
    "encoder": ("norm_placement", "norm_variance", "activation"),
    "decoder": ("norm_placement", "norm_variance", "activation"),
    "model": (
        "norm_placement",
        "output",
        "embedding_scale",
        "norm_variance",
        "activation",
        "positional_encoding",
    ),
}
"""The choices that a table leaves open, the likeliest to differ first."""


_WITH_EPSILON = {"norm_variance", "rms_weight", "router_scores"}
"""Choices of formulas that have an epsilon, which is not known yet, or that round to float32."""


class Clock:
    """The CPU time that trials may take in all: how busy the machine is changes no reading."""

    EVERY = 8
    """The clock is read once in so many trials: reading it costs a part of one."""

    def __init__(self, seconds: float) -> None:
        self.end = time.thread_time() + seconds
        self.ran_out, self.asked = False, 0

    def rings(self) -> bool:
        """Say whether the time is up."""
        if not self.ran_out and self.asked % self.EVERY == 0:
            self.ran_out = time.thread_time() > self.end
        self.asked += 1
        return self.ran_out


def fitting(
    component: str,
    tables: list[Table],
    samples: list[Sample],
    run: Run,
    sizes: Sizes,
    decided: Choices,
    clock: Clock,
) -> list[Table]:
    """Return the tables under which the oracle gives the output of the first sample it can."""
    for sample in samples:
        found: list[Table] = []
        for table in tables:
            if clock.rings():
                return found
            found_at = places(component, table, run.own, sizes, decided)
            parameters = read(found_at, run.own, sizes)
            if reproduces(component, parameters, sample, sizes, decided, clock):
                found.append(table)
        if found:
            return found
    return []


def places(
    component: str, table: Table, own: Mapping[str, Floats], sizes: Sizes, choices: Choices
) -> dict[str, Place]:
    """Return where `table` finds the canonical parameters; a bias that is not there is left out."""
    found = {}
    biased = choices.but(projection_bias="present", rms_bias="present")
    for name in shapes(component, sizes, biased):
        with suppress(KeyError):
            place = locate(name, table)
            if own.keys() & set(place.names(own)):
                found[name] = place
    return found


def read(found: Mapping[str, Place], own: Mapping[str, Floats], sizes: Sizes) -> dict[str, Floats]:
    """Return the canonical parameters at their places among the module's own."""
    return {name: place.read(own, sizes.heads) for name, place in found.items()}


def reproduces(
    component: str,
    parameters: Mapping[str, Floats],
    sample: Sample,
    sizes: Sizes,
    decided: Choices,
    clock: Clock,
) -> bool:
    """Say whether the oracle gives the sample's output under some of the open choices."""
    bound = LOOSE if _WITH_EPSILON.intersection(_OPEN.get(component, ())) else EXACT
    for choices in _options(component, decided):
        if "output" in _OPEN.get(component, ()) and not _can_be(choices.output, sample.output):
            continue
        if clock.rings():
            return False
        try:
            expected = ORACLES[component](Setting(sizes, choices, parameters), *sample.inputs)
        except (KeyError, ValueError, IndexError):  # a parameter is not there, or does not fit
            return False
        if expected.shape != sample.output.shape:
            return False
        if np.abs(expected - sample.output).max() <= bound * np.abs(expected).max():
            return True
    return False


def _can_be(output: str, actual: Floats) -> bool:
    """Say whether `actual` (.., V) can be an output of that kind, whose distributions sum to 1."""
    with np.errstate(over="ignore"):
        off = {
            "probabilities": np.abs(actual.sum(axis=-1) - 1.0).max(),
            "log-probabilities": np.abs(np.exp(actual).sum(axis=-1) - 1.0).max(),
        }
    if output == "logits":  # those of random parameters are no distributions
        return bool(min(off.values()) > EXACT)
    return bool(off[output] < _OFF)


_OFF = 0.5
"""The deviation of a sum of probabilities from 1 that no tolerance makes."""


def _options(component: str, decided: Choices) -> Iterator[Choices]:
    """Yield the choices that are left open in all their options, the fewest changes first."""
    axes = _OPEN.get(component, ())
    options = [_values(axis, decided) for axis in axes]
    usual = [several[0] for several in options]
    for values in sorted(product(*options), key=lambda one: sum(map(ne, one, usual))):
        changes = dict(zip(axes, values, strict=True))
        choices = decided.but(**changes)
        if learned_positions(choices) == learned_positions(decided):
            yield choices


def _values(axis: str, decided: Choices) -> list[Value]:
    """Return the options of a choice; the bias of a router is there or not, by the parameters."""
    if axis == "routing_scale":
        return ["none", *_SCALES]
    names: list[Value] = [one.name for one in CHOICES[axis].options]
    if axis != "router_bias":
        return names
    return names[:1] if decided.router_bias == "none" else names[1:]


_SCALES = (2.5, 16.0, 1.8)
"""Factors of published mixtures of experts."""


def part_samples(component: str, fired: Fired | None) -> list[Sample]:
    """Return what passed through a submodule as a sample of `component`, if it can be one."""
    if fired is None:
        return []
    inputs = [_batch_first(one) for one in _unlike(fired.inputs) if one.ndim == 3]
    output = _batch_first(fired.output)
    if component != "multi_head_attention":
        return [Sample((inputs[0],), output)] if len(inputs) == 1 else []
    if not 1 <= len(inputs) <= 3 or output.ndim != 3:
        return []
    inputs.sort(key=lambda one: one.shape[1] != output.shape[1])
    query, key, value = inputs[0], inputs[min(1, len(inputs) - 1)], inputs[-1]
    causal = np.tril(np.ones((1, 1, query.shape[1], key.shape[1]), dtype=bool))
    # Nothing is padded in what is drawn, so that a mask, where one is given, can only be causal.
    return [Sample((query, key, value, mask), output) for mask in (None, causal)]


def _unlike(arrays: tuple[Floats, ...]) -> list[Floats]:
    found: list[Floats] = []
    for one in arrays:
        if not any(np.array_equal(one, other) for other in found):
            found.append(one)
    return found


def _batch_first(array: Floats) -> Floats:
    return array.swapaxes(0, 1) if array.ndim == 3 and array.shape[0] != BATCH else array
