"""The epsilon of norms of a decoder-only model: one call with usual rows may leave several."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from attentest.analysis.identify.norms import EPSILONS, OF_DOUBLE
from attentest.analysis.identify.structure import WEIGHTED
from attentest.targets.language_models.verifying import TRIED, Inputs, answers, drawn
from attentest_spec import Backend, Choices
from attentest_spec.choices import Value
from attentest_spec.language_model import language_model
from attentest_spec.parameters import tied
from attentest_spec.setting import Floats, Setting

_SMALL = 1e-3
"""The scale of embeddings at which an epsilon in use shows."""

_ROWS = ("embedding.weight", "positions.weight")
"""The parameters whose rows enter the first norm."""

_CLEARLY = 0.25
"""The part of a difference that is left with another epsilon, if that is the right one."""


def closest_epsilons(
    backend: Backend, declared: Collection[str], precision: str = "float64"
) -> dict[str, Value]:
    """Return the epsilons in use that give clearly smaller differences than those of `backend`.

    Its code computes in `precision`. Those that are `declared` stay as they are.
    """
    found: dict[str, Value] = {}
    given = _small(drawn(backend, TRIED[0]))
    inputs = np.arange(6)[None, :] % given.sizes.target_vocabulary, None, None
    try:
        (actual,) = answers(backend, given, [inputs], precision, wide=precision == "float64")
        for name in _in_use(given.choices):
            if name not in declared:
                found |= _closest(name, given, inputs, actual)
    except Exception:  # code that a user wrote may raise anything; the calls after this say so
        return {}
    return found


def epsilons_in_single(backend: Backend, declared: Collection[str]) -> dict[str, Value]:
    """Return the epsilon of a `backend` in float32 alone, where it is that of the type of rows.

    A norm without an epsilon, as torch has it, takes that one.
    """
    held = backend.limits.precisions
    if backend.choices.get("rms_epsilon") != OF_DOUBLE or "float64" in held:
        return {}
    return closest_epsilons(backend, declared, "float32")


def _in_use(choices: Choices) -> Iterator[str]:
    if choices.norm_kind == "layer":
        yield "norm_epsilon"
    if choices.norm_kind == "rms" or choices.query_key_norm in WEIGHTED:
        yield "rms_epsilon"


def _small(given: Setting) -> Setting:
    """Return `given` with small embeddings of tokens and positions."""
    twins = tied("language_model", given.sizes, given.choices)
    scaled = {
        name: values * (_SMALL if twins.get(name, name) in _ROWS else 1.0)
        for name, values in given.parameters.items()
    }
    return replace(given, parameters=scaled)


def _closest(name: str, given: Setting, inputs: Inputs, actual: Floats) -> Mapping[str, Value]:
    """Return the epsilon `name` that is clearly the closest, nothing where it is the one given."""

    def apart(value: Value) -> float:
        choices = given.choices.but(**{name: value})
        return float(
            np.abs(language_model(replace(given, choices=choices), *inputs) - actual).max()
        )

    left = apart(given.choices[name])
    others = {one: apart(one) for one in EPSILONS}
    least = min(others.values())
    if least >= _CLEARLY * left:
        return {}
    return {name: next(one for one in EPSILONS if others[one] <= least / _CLEARLY)}
