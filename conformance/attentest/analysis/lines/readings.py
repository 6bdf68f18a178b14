"""Other choices that wrong code may have made, where it declares none.

What code does not declare is inferred from its numbers, and wrong numbers show nothing: the choices
are then those of Vaswani et al. 2017. Under those of the author more of the code's values are
steps of the formula.
"""

import time
from collections.abc import Iterator
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


def is_silent(choices: Choices, other: Choices) -> bool:
    """Say whether two sets of choices differ only in what the paper does not specify."""
    return all(CHOICES[name].paper is None for name in CHOICES if choices[name] != other[name])


def readings(alignment: Alignment, end: float) -> list[Alignment]:
    """Return the alignments under other choices, those with most of the code's values first.

    Those that are not tried when the CPU time of this thread has reached `end` are left out.
    """
    found = []
    for choices in dict.fromkeys(_choices(alignment)):
        if time.thread_time() > end:
            break
        other = under(alignment, choices)
        if other is not None and other is not alignment:
            found.append(other)
    found.sort(key=lambda one: len(one.covered_steps), reverse=True)
    return found[:_MOST]


def under(alignment: Alignment, choices: Choices) -> Alignment | None:
    """Return the alignment under `choices`; None where the answer is not wrong under these."""
    if choices == alignment.case.choices:
        return alignment
    case = replace(alignment.case, choices=choices)
    try:
        return None if case.target is None else alignment.under(case)
    except (ValueError, LookupError, ArithmeticError, AssertionError, TypeError):
        return None  # parameters are missing that this choice needs


def _choices(alignment: Alignment) -> Iterator[Choices]:
    case = alignment.case
    parts = inside(case.question.probe.component)
    options: list[list[dict[str, Any]]] = []
    if "layer_norm" in parts:
        options.append([{}, *_NORMS])
    if "residual" in parts:
        options.append([{}, {"norm_placement": "pre"}, {"norm_placement": "post"}])
    if "embedding" in parts:
        options.append([{}, {"embedding_scale": "none"}])
    if "generator" in parts and alignment.final is not None:
        options.append([{"output": _kind_of_output(alignment.final.array)}])
    for several in product(*options):
        changes = {name: value for one in several for name, value in one.items()}
        if not changes.keys() & case.subject.declared.keys():
            yield case.choices.but(**changes)


def _kind_of_output(array: np.ndarray[Any, Any]) -> str:
    """Return the option of the choice `output` that the numbers of a generator show."""
    for kind, values in (("probabilities", array), ("log-probabilities", np.exp(array))):
        if (values >= 0).all() and np.allclose(values.sum(-1), 1):
            return kind
    return "logits"
