"""The reading of a mixture of experts: what it has to take, and the choices behind a mistake."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product

import numpy as np
import torch

from attentest.analysis.diagnosis.variants import singles
from attentest.analysis.identify import MEASURED, NONE_FITS, Finding
from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.parameters.telling import as_explained
from attentest.targets.adapt.parameters.trials.clock import Clock
from attentest.targets.adapt.parameters.trials.trial import places, read
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Contrary, Uncovered
from attentest.targets.signatures import constructor_arguments
from attentest_spec import Choices, Setting
from attentest_spec.choices import Value
from attentest_spec.mixture_of_experts import (
    chosen_experts,
    mixture_of_experts,
    router_scores,
)
from attentest_spec.torch import to_array

COMPONENT = "mixture_of_experts"

CLOSE = 1e-6
"""Largest relative difference between an output and that of a catalogued mistake."""

SECONDS = 6.0
"""Time limit for trying mistakes of the catalogue under the usual choices."""

SMALL = -10.0
"""Logits of which sigmoids are small, and not below the precision of float32."""

LEAST_ADDED = 1e-8
"""Terms that may be added to a sum of scores, and show in no clause."""

_USUAL: Mapping[str, tuple[str, ...]] = {
    "router_scores": ("softmax", "sigmoid"),
    "routing_weights": ("renormalised", "as-scored"),
    "activation": ("silu", "gelu", "relu", "gelu-tanh"),
}
"""The options that are tried together with a mistake."""

_NO_OPTION = (
    "its numbers are those of no option, and of no mistake of the catalogue: a limit for the "
    "positions of an expert, groups of experts, noise and weights on the input of an expert are "
    "not specified"
)


def demand_sizes(code: Code) -> None:
    """Raise Uncovered for a mixture whose numbers of experts are fixed, or that limits an expert.

    A limit for the positions that an expert takes shows only where many choose it.
    """
    if code.component != COMPONENT:
        return
    limits = [own for own in constructor_arguments(code.thing) if "capacity" in squashed(own)]
    if limits:
        raise Uncovered(
            f"{code.name} is not judged as {COMPONENT}: {limits[0]} limits how many positions an "
            f"expert takes, which is not specified."
        )
    for size, what in (("experts", "experts"), ("chosen_experts", "experts that are chosen")):
        if size not in code.known:
            raise Uncovered(
                f"{code.name} is not judged as {COMPONENT}: no argument of its constructor is the "
                f"number of {what}. --argument {size}=NAME (in Python: arguments="
                f"{{{size!r}: NAME}}) says which one is; a fixed number is not judged."
            )


_RENORMALISED = re.compile(
    r"^(?!.*\b(not|never|no|without|if|unless|whether|when|optional\w*)\b)"
    r".*(\bre-?normali[sz]|\bweights\b.*\bsum(s|ming)? to (one|1)\b)",
    re.IGNORECASE,
)
"""A sentence that says that the weights of the chosen experts are divided by their sum."""


def demand_weights(
    code: Code,
    adapter: Adapter,
    found: FoundTable,
    choices: Mapping[str, Value],
    declared: Mapping[str, Value],
) -> None:
    """Raise a question on weights that are none of the spec, or not those of the documentation."""
    _demand_divisor(code, adapter, found, choices)
    is_open = code.component == COMPONENT and "routing_weights" not in declared
    if not is_open or choices.get("routing_weights") != "as-scored":
        return
    if said := next(filter(_RENORMALISED.search, _sentences(code)), None):
        raise Contrary(
            f"The documentation of {code.name} says {said!r}, and its numbers are those of weights "
            f"that are not divided by their sum. Say which one is meant: --choice "
            f"routing_weights=renormalised or --choice routing_weights=as-scored."
        )


def _sentences(code: Code) -> list[str]:
    """Return the sentences that document a mixture of experts: its own, then those of its file.

    A file says it of a router, of experts or of a top k.
    """
    of_file = _split((code.home and code.home.__doc__) or "")
    return [*_split(code.words), *filter(_ROUTES.search, of_file)]


_ROUTES = re.compile(r"\b(router|gate|gating|experts?|top[- ]?k)\b", re.IGNORECASE)


def _split(words: str) -> list[str]:
    plain = " ".join(words.split())
    return [one.strip() for one in re.split(r"[.;](?:\s|$)", plain) if one.strip()]


def _demand_divisor(
    code: Code, adapter: Adapter, found: FoundTable, choices: Mapping[str, Value]
) -> None:
    """Raise Uncovered for weights that are divided by more than their sum.

    Scores that are small show it; a softmax has none that are small in all of the chosen experts.
    """
    declared = Choices.of(dict(choices))
    shows = declared.router_scores == "sigmoid" and declared.routing_weights == "renormalised"
    if code.component != COMPONENT or not shows or found.observed is None or not found.table:
        return
    added = _added(adapter, found, declared)
    if added > LEAST_ADDED:
        raise Uncovered(
            f"{code.name} is not judged as {COMPONENT}: about {added:.1g} is added to the sum that "
            f"the weights of the chosen experts are divided by, which is not specified."
        )


def _added(adapter: Adapter, found: FoundTable, declared: Choices) -> float:
    """Return what is added to the sum of the weights, where all scores are small; 0 for nothing."""
    seen = found.observed
    assert seen is not None
    at = places(COMPONENT, found.table, seen.run.own, seen.sizes, declared)
    given = Setting(seen.sizes, declared, read(at, seen.run.own, seen.sizes))
    router = given["router.weight"]
    logits = SMALL - 0.1 * np.arange(len(router))
    if declared.router_bias == "in-scores":
        logits = logits - given["router.bias"]
    x = np.linalg.lstsq(router, logits)[0][None, None]
    factor = 1.0 if declared.routing_scale == "none" else float(declared.routing_scale)
    doubled = Setting(seen.sizes, declared.but(routing_scale=2 * factor), given.parameters)
    try:
        with undisturbed():
            actual = to_array(adapter(seen.module, torch.from_numpy(x)))
    except Exception:  # code that a user wrote may raise anything
        return 0.0
    once = mixture_of_experts(given, x)
    routed = mixture_of_experts(doubled, x) - once  # without the shared expert
    share = 1.0 + float(np.sum((actual - once) * routed) / np.sum(routed * routed))
    scores = router_scores(given, x[0])
    total = np.take_along_axis(scores, chosen_experts(given, scores), axis=-1).sum()
    return float(total) * (1.0 / share - 1.0) if share > 0 else 0.0


def settled(
    code: Code, adapter: Adapter, found: FoundTable, findings: Mapping[str, Finding]
) -> FoundTable:
    """Return `found` with the choices under which a mistake of the catalogue gives the numbers.

    Where no option explains the numbers of a mixture of experts, and no mistake, it has a doubt.
    Where options explain the numbers, its remarks say so.
    """
    statuses = {one.status for one in findings.values()}
    unexplained = NONE_FITS in statuses
    if not unexplained and MEASURED in statuses:
        return replace(found, remarks=as_explained(found.remarks))
    if code.component != COMPONENT or not unexplained or not found.table:
        return found
    doubtful = replace(found, doubts=[*found.doubts, _NO_OPTION])
    choices = next(_of_mistakes(found), None)
    return doubtful if choices is None else replace(doubtful, choices=choices)


def _of_mistakes(found: FoundTable) -> Iterator[dict[str, Value]]:
    """Yield the choices under which a mistake of the catalogue gives the numbers."""
    seen = found.observed
    if seen is None or not seen.run.samples:
        return
    sample, clock = seen.run.samples[0], Clock(SECONDS)
    for values in product(*_USUAL.values()):
        choices = {**found.choices, **dict(zip(_USUAL, values, strict=True))}
        declared = Choices.of(choices)
        at = places(COMPONENT, found.table, seen.run.own, seen.sizes, declared)
        parameters = read(at, seen.run.own, seen.sizes)
        for variant in singles(declared, COMPONENT, ""):
            if clock.rings():
                return
            if not variant.faults or variant.faults[0].kind != "value":
                continue
            try:
                part = variant.backend().build(COMPONENT, seen.sizes)
                part.load(parameters)
                output = np.asarray(part(*deepcopy(sample.inputs)))  # some write into it
            except Exception:  # a mistake may show itself by raising
                continue
            if output.shape == sample.output.shape and _close(output, sample.output):
                yield choices
                return


def _close(output: np.ndarray, actual: np.ndarray) -> bool:
    return bool(np.abs(output - actual).max() <= CLOSE * np.abs(actual).max())
