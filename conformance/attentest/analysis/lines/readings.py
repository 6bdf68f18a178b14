"""Other choices that wrong code may have made, where it declares none.

What code does not declare is inferred from its numbers, and wrong numbers show nothing: the choices
are then those of Vaswani et al. 2017. Under those of the author more of the code's values are
steps of the formula.
"""

import time
from collections.abc import Collection
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from attentest.analysis.lines.alignment import Alignment
from attentest_spec import CHOICES, Choices
from attentest_spec.components import inside

_MOST = 3
"""The number of other readings that are tried, those with most values of the code first."""

_NORMS: tuple[dict[str, Any], ...] = tuple(
    {"norm_epsilon_place": place, "norm_variance": variance, "norm_epsilon": epsilon}
    for place, variance, epsilon in (
        ("inside-root", "biased", 1e-5),
        ("inside-root", "biased", 1e-6),
        ("added-to-deviation", "unbiased", 1e-6),
        ("inside-root", "biased", 1e-12),
    )
)
"""Formulas of the norm that are in use."""

_RMS_NORMS: tuple[dict[str, Any], ...] = (
    {"rms_epsilon": 1e-5},
    {"rms_epsilon_place": "floor-of-length", "rms_epsilon": 1e-12},
    {"rms_epsilon_place": "added-to-rms", "rms_epsilon": 1e-8},
    {"rms_epsilon_place": "floor-of-rms", "rms_epsilon": 1e-8},
    {"rms_epsilon": 1e-8},
    {"rms_epsilon": 1e-12},
)
"""Formulas of the RMS norm that are in use."""


_ROTARY: tuple[dict[str, Any], ...] = tuple(
    {"attention_rotary": "query-and-key", "rotary_pairs": one, "rotary_base": "10000"}
    for one in ("halves", "adjacent")
)
"""Rotary positions that are in use."""

_POSITIONS: tuple[dict[str, Any], ...] = (
    *_ROTARY,
    {"relative_bias": "alibi"},
    {"relative_bias": "alibi-geometric"},
)
"""Positions inside attention that are in use."""

_LOSSES: tuple[dict[str, Any], ...] = tuple(
    {"smoothed_mass": mass, "loss_measure": measure}
    for mass in ("all-words", "other-words", "other-real-words")
    for measure in ("cross-entropy", "divergence")
)
"""Losses with label smoothing that are in use."""

_ROUNDING = "position_arithmetic"
"""The choice of a table in single precision: other roundings of the same formula."""


def is_silent(choices: Choices, other: Choices) -> bool:
    """Say whether two sets of choices differ only in rounding, or in what the paper leaves open."""
    return all(
        CHOICES[name].paper is None or name == _ROUNDING
        for name in CHOICES
        if choices[name] != other[name]
    )


def readings(alignment: Alignment, end: float) -> list[Alignment]:
    """Return the alignments under other choices, those with most of the code's values first.

    One kind of choices is settled after the other, by the values that are recognised under it.
    Those that are not tried when the CPU time of this thread has reached `end` are left out.
    """
    found: list[Alignment] = []
    best, tried = alignment, {alignment.case.choices}
    for options in _options(alignment):
        for choices in [best.case.choices.but(**changes) for changes in options]:
            if time.thread_time() > end or choices in tried:
                continue
            tried.add(choices)
            other = under(alignment, choices)
            if other is not None:
                found.append(other)
        best = max([best, *found], key=lambda one: len(one.covered_steps))
    found.sort(key=lambda one: len(one.covered_steps), reverse=True)
    few = alignment.case.question.probe.component != "loss"  # whose choices show in no value
    return found[:_MOST] if few else found


def under(alignment: Alignment, choices: Choices) -> Alignment | None:
    """Return the alignment under `choices`; None where the answer is not wrong under these."""
    if choices == alignment.case.choices:
        return alignment
    case = replace(alignment.case, choices=choices)
    try:
        return None if case.target is None else alignment.under(case)
    except (ValueError, LookupError, ArithmeticError, AssertionError, TypeError):
        return None  # parameters are missing that this choice needs


def _options(alignment: Alignment) -> list[list[dict[str, Any]]]:
    """Return the other options, of one kind of choices after the other, that are not declared.

    A norm shows its formula only where it is in its place: these two are one kind.
    """
    case = alignment.case
    component = case.question.probe.component
    parts = inside(component)
    kinds: list[list[dict[str, Any]]] = []
    if "positional_encoding" in parts and _has_single_precision(alignment):
        kinds.append([{_ROUNDING: "float32"}])
    if "generator" in parts and alignment.final is not None:
        kinds.append([{"output": _kind_of_output(alignment.final.array)}])
    if "embedding" in parts:
        kinds.append([{"embedding_scale": "none"}])
    norms = [{}, *_NORMS] if "layer_norm" in parts else [{}]
    if "residual" in parts and case.choices.norm_bias == "none":
        of_rms = [{"norm_kind": "rms", **one} for one in ({"rms_epsilon": 1e-6}, *_RMS_NORMS[:1])]
        is_later = case.choices.feed_forward_gate == "gated"
        norms = [*of_rms, *norms] if is_later else [*norms, *of_rms]
    places = ["pre", "post"] if "residual" in parts else []
    placed = [{"norm_placement": one} for one in places] or [{}]
    kinds.append([{**norm, **place} for norm, place in product(norms, placed)])
    if "rms_norm" in parts:
        kinds += [[{"rms_weight": "one-plus-weight"}], [*_RMS_NORMS]]
    if "feed_forward" in parts:
        kinds.append([{"activation": one} for one in ("gelu", "silu", "gelu-tanh")])
    if component == "loss":
        kinds.append([*_LOSSES])
    if component == "multi_head_attention":
        turned = case.choices.attention_rotary != "none"  # and positions are in one place alone
        kinds += [[{"attention_causality": "built-in"}], [*(_ROTARY if turned else _POSITIONS)]]
    return [_undeclared(one, case.subject.declared) for one in kinds]


def _undeclared(options: list[dict[str, Any]], declared: Collection[str]) -> list[dict[str, Any]]:
    """Return the different ones of the options that are left without the `declared` choices."""
    left = [{name: one[name] for name in one if name not in declared} for one in options]
    return [one for number, one in enumerate(left) if one and one not in left[:number]]


def _has_single_precision(alignment: Alignment) -> bool:
    """Say whether some of the values are in float32, as most tables of positions are."""
    operations = alignment.recording.operations
    return any(one.array.dtype == np.float32 for made in operations for one in made.outputs)


def _kind_of_output(array: np.ndarray[Any, Any]) -> str:
    """Return the option of the choice `output` that the numbers of a generator show."""
    for kind, values in (("probabilities", array), ("log-probabilities", np.exp(array))):
        if (values >= 0).all() and np.allclose(values.sum(-1), 1):
            return kind
    return "logits"
