"""Values of arguments and fields that are no size of a model, by their names."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from attentest.targets.adapt.components import squashed
from attentest.targets.adapt.names import BATCHES, EPSILON, RATIO, words

FIXED: Mapping[str, str] = {
    **dict.fromkeys(
        words("modeltype quantization moe rotaryscaling ropescaling ropefreq dtype"), "None"
    ),
    **dict.fromkeys(words("multipleof paddingmultiple padmultiple padtomultipleof"), "1"),
    **dict.fromkeys(words("device"), '"cpu"'),
    **{own: str(number) for own, number in BATCHES.items()},  # more than is judged
}
"""Values of arguments that are no size, whatever their default is."""

_INNER_FACTOR = "ffndimmultiplier"
"""The factor of an inner width that is rounded before and after: with 1 it is rounded once."""


_ROWS = re.compile(r"(max|cache|kv).*batch(es|size)?$|batch(es|size)?(max|cached)")
"""Names of the greatest number of rows that a cache holds."""


def fixed_value(name: str, default: Any) -> str | None:
    """Return the expression of the argument `name` that is no size, None for one that may be."""
    if name == _INNER_FACTOR and isinstance(default, float):
        return "1.0"
    if _ROWS.search(name) and (default is inspect.Parameter.empty or type(default) is int):
        return FIXED["maxbatchsize"]
    return None if name == "dtype" and isinstance(default, str) else FIXED.get(name)


USUAL: Mapping[str, str] = {
    **dict.fromkeys((*RATIO, *words("expansionratio mlpexpansion")), "4"),
    **dict.fromkeys(EPSILON, "1e-5"),
    **dict.fromkeys(
        words("bias usebias qkvbias qknorm tieweights tiewordembeddings tieembeddings"), "True"
    ),
    **dict.fromkeys(words("causal iscausal"), "True"),
    **dict.fromkeys(words("initstd initializerrange"), "0.02"),
    **dict.fromkeys(words("batchsize"), "64"),
    **dict.fromkeys(words("ropetheta ropebase theta rotarybase base"), "10000.0"),
}
"""Values of arguments that are required, and no size."""

_FACTOR = re.compile(r"mult|factor|ratio|expan")
_OTHER_FACTOR = re.compile(r"drop|rop|rotary|scaling|capacity|head|depth|lr|rate|(size|width)$")


def usual(own: str) -> str | None:
    """Return the usual value of the required argument `own` that is no size, None for no idea.

    One that is called a factor, whatever it is called besides, is that of an inner width.
    """
    name = squashed(own)
    factor = _FACTOR.search(name) and not _OTHER_FACTOR.search(name)
    return USUAL.get(name) or ("4" if factor else None)
