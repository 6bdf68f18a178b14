"""Mixtures of experts that divide the weights by their sum only where several are chosen."""

import numpy as np
import torch

from attentest.targets.adapt.adapter import Adapter
from attentest.targets.adapt.code import Code
from attentest.targets.adapt.parameters.found import FoundTable
from attentest.targets.adapt.parameters.trials.trial import places, read
from attentest.targets.adapt.probing import SIZES, undisturbed
from attentest.targets.adapt.reading import Uncovered
from attentest_spec import Choices, Setting
from attentest_spec.mixture_of_experts import mixture_of_experts
from attentest_spec.setting import Floats
from attentest_spec.torch import to_array

COMPONENT = "mixture_of_experts"

_ALONE = SIZES.but(experts=5, chosen_experts=1)
_CLOSE = 1e-6


def demand_division(code: Code, adapter: Adapter, found: FoundTable, declared: Choices) -> None:
    """Raise Uncovered where a single expert that is chosen is weighed by its score.

    `declared` divides the weights by their sum, which is 1 then. Published code divides them "if
    top_k > 1": with one expert the division would leave its router without a gradient.
    """
    if declared.routing_weights != "renormalised" or code.construction is None:
        return
    x = np.random.default_rng(2).normal(size=(2, 5, _ALONE.d_model))
    try:
        with undisturbed():
            module = code.construction(_ALONE).double().eval()
            actual = to_array(adapter(module, torch.from_numpy(x)))
        own = {name: to_array(one.detach()) for name, one in module.named_parameters()}
        at = places(COMPONENT, found.table, own, _ALONE, declared)
        given = Setting(_ALONE, declared, read(at, own, _ALONE))
        weighed = Setting(_ALONE, declared.but(routing_weights="as-scored"), given.parameters)
        wanted, other = (mixture_of_experts(one, x) for one in (given, weighed))
    except Exception:  # code that a user wrote may raise anything; clauses say so
        return
    if _is_close(actual, other) and not _is_close(actual, wanted):
        raise Uncovered(
            f"{code.name} is not judged as {COMPONENT}: it divides the weights of several experts "
            f"by their sum, and weighs the only one by its score where one is chosen. The spec has "
            f"weights that are divided in both cases, or in neither. Either that is meant, or it "
            f"is a mistake; --anyway (in Python: anyway=True) judges it all the same."
        )


def _is_close(actual: Floats, wanted: Floats) -> bool:
    return actual.shape == wanted.shape and bool(
        np.abs(actual - wanted).max() <= _CLOSE * np.abs(wanted).max()
    )
