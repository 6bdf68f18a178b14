"""The kind of a norm, measured: it is called with rows of numbers, and formulas are compared."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import nn

from attentest_spec.choices import Value
from attentest_spec.setting import Floats
from attentest_transformers_causal.structure import NotJudged

FITS = 1e-4
"""The largest difference of a reading that fits, relative to the largest logit: single precision
inside of the library gives 1e-6, and another design 1e-2."""

EXACT = 1e-11
"""The largest difference of numbers that are all computed in float64."""


def norm_choices(module: nn.Module) -> dict[str, Value]:
    """Return the choices of a norm that gives the same row as one of the formulas."""
    names = ("eps", "variance_epsilon", "norm_eps", "epsilon")
    epsilon = next((float(getattr(module, one)) for one in names if hasattr(module, one)), None)
    parameters = dict(module.named_parameters())
    if epsilon is None:
        raise NotJudged(f"its {type(module).__name__} has no epsilon")
    if "weight" not in parameters:
        raise NotJudged(f"its {type(module).__name__} has no weight")
    width = parameters["weight"].numel()
    rng = np.random.default_rng(7)
    x, weight, bias = rng.normal(size=(3, width)), rng.normal(size=width), rng.normal(size=width)
    x = x + 0.5
    held = {name: one.detach().clone() for name, one in parameters.items()}
    with torch.no_grad():
        parameters["weight"].copy_(torch.from_numpy(weight))
        if "bias" in parameters:
            parameters["bias"].copy_(torch.from_numpy(bias))
        said = module(torch.from_numpy(x)).double().numpy()
        for name, one in held.items():
            parameters[name].copy_(one)
    for choices, expected in _norms_of(x, weight, bias if "bias" in parameters else None, epsilon):
        difference = np.abs(said - expected).max() / np.abs(expected).max()
        if difference < FITS:
            if choices["norm_kind"] == "rms":
                choices["rms_arithmetic"] = "as-computed" if difference < EXACT else "float32"
            return choices
    raise NotJudged(f"its {type(module).__name__} is neither a layer norm nor an RMS norm")


def _norms_of(
    x: Floats, weight: Floats, bias: Floats | None, epsilon: float
) -> Iterator[tuple[dict[str, Value], Floats]]:
    shift = 0.0 if bias is None else bias
    rms = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    of_rms: dict[str, Value] = {
        "norm_kind": "rms",
        "rms_epsilon_place": "inside-root",
        "rms_epsilon": epsilon,
        "rms_bias": "none" if bias is None else "present",
    }
    yield {**of_rms, "rms_weight": "weight"}, rms * weight + shift
    yield {**of_rms, "rms_weight": "one-plus-weight"}, rms * (1 + weight) + shift
    centred = x - x.mean(-1, keepdims=True)
    layer = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    yield (
        {
            "norm_kind": "layer",
            "norm_epsilon_place": "inside-root",
            "norm_variance": "biased",
            "norm_epsilon": epsilon,
            "norm_bias": "none" if bias is None else "present",
        },
        layer * weight + shift,
    )
