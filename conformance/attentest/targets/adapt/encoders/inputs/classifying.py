"""Classes of tokens by what a call gives: scores of every id, or something else."""

import inspect
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from attentest.targets.adapt.encoders import default_sizes
from attentest.targets.adapt.parameters.building import DISTINCT
from attentest.targets.adapt.probing import undisturbed
from attentest.targets.adapt.reading import Reading

_IDS = 2, 7
_MORE = 3


def is_classifier(thing: Any, reading: Reading) -> bool:
    """Say whether a call of the class `thing` with ids gives numbers, and no scores of all ids."""
    try:
        with undisturbed(), torch.no_grad():
            module = default_sizes.built_of(thing, "encoder", reading)(DISTINCT).eval()
            own = inspect.signature(module.forward).parameters.values()
            if sum(one.default is one.empty for one in own) != 1:
                return False
            found = tree_leaves(module(torch.ones(_IDS, dtype=torch.int64)))
    except Exception:  # code that a user wrote may raise anything
        return False
    given = [one for one in found if isinstance(one, Tensor) and one.is_floating_point()]
    words = range(DISTINCT.source_vocabulary, DISTINCT.source_vocabulary + _MORE + 1)
    return bool(given) and not any(size in words for one in given for size in one.shape)
