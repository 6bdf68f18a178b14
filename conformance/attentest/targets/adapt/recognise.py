"""Recognises by measurement what is common, sound, and not covered by the spec.

Each recogniser tries a formula, or a law, on what the code computed; names alone show nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.analysis.identify.norms import EPSILONS as IN_USE
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.parameters.behaviour import BATCH, QUERIES, Fired, Sample
from attentest.targets.adapt.parameters.found import Observed
from attentest.targets.adapt.parameters.norm_kinds import (
    EPSILONS,
    LAYERED,
    RMS,
    is_layer_norm,
    is_rms,
)
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.open_choices import LOOSE
from attentest.targets.adapt.parameters.trials.trial import fitting, places, read
from attentest.targets.adapt.parameters.units import Unit, squeezed, units
from attentest.targets.adapt.parameters.words import projections
from attentest.targets.adapt.probing import Probe, undisturbed
from attentest_spec import CHOICES, Choices, Sizes
from attentest_spec.choices import Value
from attentest_spec.layer_norm import layer_norm
from attentest_spec.mapping import Table, locate
from attentest_spec.parameters import learned_positions
from attentest_spec.positional_encoding import table
from attentest_spec.setting import Floats, Setting
from attentest_spec.torch import to_array

_SEQUENCES: Mapping[str, tuple[int, int]] = {
    "multi_head_attention": (3, 1),
    "encoder_layer": (1, 1),
    "decoder_layer": (2, 2),
    "encoder": (1, 1),
}
"""Components that one sequence can be given to: how many inputs carry it, and how many masks."""

GATES: Mapping[str, Callable[[Tensor], Tensor]] = {
    "SwiGLU": functional.silu,
    "GEGLU": functional.gelu,
    "GEGLU with the tanh form": lambda x: functional.gelu(x, approximate="tanh"),
    "ReGLU": functional.relu,
    "GLU": torch.sigmoid,
    "bilinear": lambda x: x,
}
"""The activations of gated feed-forward networks, by the name of the network."""


def recognised(
    seen: Observed,
    component: str,
    call: Callable[..., Any],
    table: Table,
    choices: Mapping[str, Value],
) -> str:
    """Return what the code is instead of `component`, in a clause of a sentence; "" if unknown.

    `call` takes a module and the contract's inputs as tensors; `table` and `choices` are what was
    inferred.
    """
    if not seen.run.samples:
        return ""
    held = units(seen.module, seen.sizes.heads)
    known = Choices.of(dict(choices))
    ways: Iterator[str] = (
        found
        for several in (
            [] if seen.sizes.kv_heads else [_grouped_heads(held)],
            (_one_plus_gain(seen, component, table, known) for _ in range(1)),
            (_centred_over_positions(seen, component, table, known) for _ in range(1)),
            (_rms_norm(fired, component, table) for fired in seen.run.fired),
            (_centred_heads(fired, table) for fired in seen.run.fired),
            (_positions_added(fired, seen.run.samples[0], component) for fired in seen.run.fired),
            (_gate(fired, held, seen.run.own, component) for fired in seen.run.fired),
            (_norm_first(fired, held, seen, component) for fired in seen.run.fired),
            (_positions_inside(seen, call, component, table, known) for _ in range(1)),
        )
        for found in several
    )
    with undisturbed():
        return next(filter(None, ways), "")


def _grouped_heads(held: list[Unit]) -> str:
    """Recognise keys and values of fewer heads than the queries, by the shapes."""
    rows: dict[str, int] = {}
    for unit in held:
        for role in projections(unit.path) if len(squeezed(unit.shape)) == 2 else ():
            rows.setdefault(role, max(unit.shape) if unit.kind != "linear" else unit.shape[0])
    query, key, value = (rows.get(role, 0) for role in ("query", "key", "value"))
    if not 0 < key == value < query or query % key:
        return ""
    return (
        f"its queries have {query} features and its keys and values {key}: attention with fewer "
        f"heads for keys and values (grouped-query attention)"
    )


def _rms_norm(fired: Fired, component: str, table: Table) -> str:
    """Recognise a norm that divides by the root of the mean square, and subtracts nothing.

    Layers may have it in place of a layer norm, and attention for its queries and keys.
    """
    is_known = component in ("rms_norm", *LAYERED) or "query_norm.gain" in table
    if is_known or not is_rms(fired):
        return ""
    where = f"{fired.path} " if fired.path else "it "
    advice = "" if fired.path else ", which --as rms_norm judges"
    return f"{where}{RMS}{advice}"


def _centred_heads(fired: Fired, table: Table) -> str:
    """Recognise a layer norm of queries or keys, where the spec has RMS norms alone."""
    gains = [name for name in ("query_norm.gain", "key_norm.gain") if name in table]
    norms = [locate(name, table).name.rpartition(".")[0] for name in gains]
    if fired.path not in norms or is_rms(fired) or not is_layer_norm(fired):
        return ""
    return f"{fired.path} subtracts the mean: it is a layer norm of queries or keys"


def _one_plus_gain(seen: Observed, component: str, table: Table, known: Choices) -> str:
    """Recognise a layer norm that multiplies by 1 + weight."""
    parameters = _of_norm(seen, component, table, known)
    x = seen.run.samples[0].inputs[0]
    if "gain" not in parameters or x is None:
        return ""
    raised = {**parameters, "gain": parameters["gain"] + 1.0}
    norms = (known.but(norm_epsilon=one) for one in IN_USE)
    if not any(_close(seen, layer_norm(Setting(seen.sizes, one, raised), x)) for one in norms):
        return ""
    return "it multiplies by 1 + weight, so that a weight of 0 changes nothing"


def _centred_over_positions(seen: Observed, component: str, table: Table, known: Choices) -> str:
    """Recognise a layer norm whose result is centred over the positions, feature by feature."""
    parameters = _of_norm(seen, component, table, known)
    x = seen.run.samples[0].inputs[0]
    if not parameters or x is None:
        return ""
    normed = layer_norm(Setting(seen.sizes, known, parameters), x)
    axes = (axis for axis in range(x.ndim - 1) if x.shape[axis] > 1)
    if not any(_close(seen, normed - normed.mean(axis=axis, keepdims=True)) for axis in axes):
        return ""
    return (
        "it takes from each feature of the normed rows its mean over the positions, as parts of "
        "series do that have no trend"
    )


def _of_norm(seen: Observed, component: str, table: Table, known: Choices) -> Mapping[str, Floats]:
    """Return the parameters of a layer norm as it was called, none for another component."""
    if component != "layer_norm" or not table:
        return {}
    at = places(component, table, seen.run.own, seen.sizes, known)
    return read(at, seen.run.own, seen.sizes)


def _close(seen: Observed, expected: Floats) -> bool:
    """Say whether a norm returned what is expected, up to its epsilon."""
    output = seen.run.samples[0].output
    return bool(np.abs(expected - output).max() <= EPSILONS * np.abs(output).max())


def _norm_first(fired: Fired, held: list[Unit], seen: Observed, component: str) -> str:
    """Recognise a sublayer that is handed out together with the norm in front of it."""
    norms = [unit.path for unit in held if unit.kind == "norm" and unit.path]  # not itself
    if component not in ("multi_head_attention", "feed_forward") or fired.path not in norms:
        return ""
    given = [one for one in seen.run.samples[0].inputs if one is not None]
    entered = [one for one in fired.inputs if any(np.array_equal(one, x) for x in given)]
    if not entered or fired.output.shape != entered[0].shape:
        return ""
    return f"it norms its input first, by {fired.path}: it is the part and its norm in one"


def _gate(fired: Fired, held: list[Unit], own: Mapping[str, Floats], component: str) -> str:
    """Recognise a feed-forward network in which one projection multiplies another.

    Alone and in layers it is judged as such, alone but for a gate without an activation.
    """
    start = f"{fired.path}." if fired.path else ""
    inside = [one for one in held if one.path.startswith(start) and one.kind != "norm"]
    if component in LAYERED or len(fired.inputs) != 1 or not 2 <= len(inside) <= 3:
        return ""
    if any(one.per_head for one in inside):  # modules for each head are no network
        return ""
    x, y = (torch.from_numpy(one) for one in (fired.inputs[0], fired.output))
    for gate, up, down in _projections(inside, own, x.shape[-1]):
        for name, activation in GATES.items():
            if component == "feed_forward" and name != "bilinear":
                continue
            found = down(activation(gate(x)) * up(x))
            if found.shape == y.shape and (found - y).abs().max() <= LOOSE * y.abs().max():
                where = f"{fired.path} multiplies" if fired.path else "it multiplies"
                return f"{where} one projection by another: a gated feed-forward network ({name})"
    return ""


_Linear = Callable[[Tensor], Tensor]


def _projections(
    inside: list[Unit], own: Mapping[str, Floats], width: int
) -> Iterator[tuple[_Linear, _Linear, _Linear]]:
    """Yield gate, inner and outer projection, in all orders that the shapes allow."""
    for order in permutations(inside):
        *wide, last = (_affine(unit, own) for unit in order)
        weights = [weight for weight, _ in wide]
        if len(wide) == 1 and weights[0].shape[0] % 2 == 0:
            halves = [(part, bias) for part, bias in zip(*_halved(*wide[0]), strict=True)]
            wide, weights = halves, [one for one, _ in halves]
        shapes = {weight.shape for weight in weights}
        if len(wide) != 2 or shapes != {last[0].shape[::-1]} or weights[0].shape[-1] != width:
            continue
        first, second, outer = (_linear(*one) for one in (*wide, last))
        yield first, second, outer
        yield second, first, outer


def _affine(unit: Unit, own: Mapping[str, Floats]) -> tuple[Tensor, Tensor | None]:
    """Return weight (out, in) and bias of `unit`; what is no nn.Linear is taken for x @ W."""
    weight = torch.from_numpy(own[unit.weight])
    bias = torch.from_numpy(own[unit.bias]) if unit.bias else None
    return (weight if unit.kind == "linear" else weight.mT), bias


def _halved(weight: Tensor, bias: Tensor | None) -> tuple[Any, Any]:
    return weight.chunk(2), (None, None) if bias is None else bias.chunk(2)


def _linear(weight: Tensor, bias: Tensor | None) -> _Linear:
    return lambda x: functional.linear(x, weight, bias)


def _positions_added(fired: Fired, sample: Sample, component: str) -> str:
    """Recognise a stack or a layer that adds one table to its input, the same for all samples."""
    x = sample.inputs[0]
    stacks = ("encoder", "decoder")
    is_one = component in (*stacks, "encoder_layer", "decoder_layer")
    if not is_one or x is None or not fired.path or not fired.inputs:
        return ""
    entered = fired.inputs[0]
    if entered.shape != x.shape:
        return ""
    added = entered - x
    room = LOOSE * np.abs(x).max()
    if np.abs(added - added[:1]).max() > room or np.abs(added - added[:, :1]).max() <= room:
        return ""
    return "it adds positions to its input" + ": its layers can be judged one by one" * (
        component in stacks
    )


def _positions_inside(
    seen: Observed, call: Callable[..., Any], component: str, table: Table, known: Choices
) -> str:
    """Recognise scores that depend on positions: rotary, relative or linear biases.

    Where all positions hold one vector, weights that sum to 1 change nothing: the formula must
    hold there. Where they differ, the last row must depend on the order of the rows before it.
    """
    x = np.random.default_rng(3).normal(size=(BATCH, QUERIES + 1, seen.sizes.d_model))
    for mask in (None, _CAUSAL) if component not in ("encoder", "decoder_layer") else (None,):
        if not holds_where_rows_are_alike(seen, call, component, table, known, mask):
            continue
        plain, swapped = (
            answer(call, seen.module, _one_sequence(component, one, mask))
            for one in (x, x[:, _SWAPPED])
        )
        if np.abs(plain[:, -1] - swapped[:, -1]).max() > LOOSE * np.abs(plain).max():
            return (
                "its attention depends on the positions of the keys, which it encodes inside "
                "(rotary, relative or linear biases)"
            )
    return ""


def scaled_table(call: Callable[..., Any], built: Any, sizes: Sizes) -> str:
    """Recognise sines that are multiplied by a number; "" for all else."""
    zeros = torch.zeros(1, QUERIES, sizes.d_model, dtype=torch.float64)
    with undisturbed():
        found = answer(call, built, (to_array(zeros),))
    if found is None or found.shape != zeros.shape:
        return ""
    for option in CHOICES["positional_encoding"].options:
        choices = Choices(positional_encoding=option.name)
        if option.name == "none" or learned_positions(choices):
            continue
        wanted = table(Setting(choices=choices), QUERIES, sizes.d_model)
        factor = float((found[0] * wanted).sum() / np.square(wanted).sum())
        close = np.abs(found[0] - factor * wanted).max() <= LOOSE * abs(factor)
        if close and abs(factor) > LOOSE and abs(factor - 1) > LOOSE:
            return f"what it adds is the table of {option.name} times {factor:.4g}"
    return ""


_RESERVED = 2
"""The rows in front of the first position in the tables of fairseq and its descendants."""


def scaled_rows(probe: Probe, adapter: Adapter) -> str:
    """Recognise a trained table that is multiplied, or begins with a later row; "" for others."""
    held = list(probe.built.parameters()) if isinstance(probe.built, nn.Module) else []
    still = {name: torch.zeros_like(value) for name, value in probe.given(adapter).items()}
    found = probe.called(adapter, still)
    if len(held) != 1 or isinstance(found, str) or found.ndim != 3:
        return ""
    rows = held[0].detach().squeeze()
    if rows.ndim != 2 or rows.shape[1] != found.shape[2] or len(rows) < found.shape[1]:
        return ""
    length = found.shape[1]
    if torch.equal(found[0], rows[_RESERVED : length + _RESERVED]):
        return (
            f"position 0 has row {_RESERVED} of its table, which is built with {len(rows)} rows: "
            f"its caller has to ask for {_RESERVED} more, as in fairseq, or this is a mistake"
        )
    rows = rows[:length]
    factor = float((found[0] * rows).sum() / rows.square().sum())
    close = (found[0] - factor * rows).abs().max() <= LOOSE * abs(factor)
    if not close or abs(factor - 1) <= LOOSE or abs(factor) <= LOOSE:
        return ""
    return f"what it adds is its trained table times {factor:.4g}, which the spec has no choice for"


def holds_where_rows_are_alike(
    seen: Observed,
    call: Callable[..., Any],
    component: str,
    table: Table,
    known: Choices,
    mask: Any = None,
) -> bool:
    """Say whether the formula holds where all positions hold one vector.

    No weights that sum to 1 change anything there: what holds is the map of all parameters that
    make no scores.
    """
    if component not in _SEQUENCES or not table:
        return False
    x = np.random.default_rng(3).normal(size=(BATCH, 1, seen.sizes.d_model))
    inputs = _one_sequence(component, np.repeat(x, QUERIES + 1, axis=1), mask)
    output = answer(call, seen.module, inputs)
    if output is None:
        return False
    sample = Sample(inputs, output)
    return bool(fitting(component, [table], [sample], seen.run, seen.sizes, known, Clock(1.0)))


_SWAPPED = [1, 0, *range(2, QUERIES + 1)]
_CAUSAL = np.tril(np.ones((1, 1, QUERIES + 1, QUERIES + 1), dtype=bool))


def _one_sequence(component: str, x: Floats, mask: Any) -> Any:
    """Return inputs of `component` in which `x` is every sequence, and `mask` every mask."""
    given, masks = _SEQUENCES[component]
    return (*[x] * given, *[mask] * masks)


def answer(call: Callable[..., Any], module: nn.Module, inputs: Any) -> Any:
    """Return the output for arrays, None where there is none."""
    given = [None if one is None else torch.from_numpy(one.copy()) for one in inputs]
    try:
        result = call(module, *given)
    except Exception:  # code that a user wrote may raise anything
        return None
    output = result[0] if isinstance(result, tuple | list) else result
    return to_array(output) if isinstance(output, Tensor) else None
