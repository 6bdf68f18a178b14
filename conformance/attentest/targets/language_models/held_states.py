"""Tensors that a decoder-only model holds from one call to the next."""

import torch
from torch import Tensor, nn

from attentest.targets.adapt.probing import undisturbed
from attentest.targets.language_models.calling import Call, probe_tokens
from attentest.targets.language_models.construction.building import PROBE, Building
from attentest.targets.single import widened


def changed_by_calls(built: Building, call: Call) -> str:
    """Return the first tensor, no parameter, that other tokens leave another in the model.

    "" for none, and for a call that raises: such a tensor is the cache of a model that holds one.
    """
    compiled, tokens = call.compiled(), probe_tokens()
    try:
        with undisturbed(), widened():
            model = built(PROBE).double().eval()
            compiled(model, tokens)
            before = {name: one.clone() for name, one in _held(model).items()}
            compiled(model, (tokens + 1) % PROBE.target_vocabulary)
    except Exception:  # code that a user wrote may raise anything
        return ""
    for name, one in _held(model).items():
        if name not in before or not torch.equal(before[name], one):
            return name
    return ""


def _held(model: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that are attributes or buffers of the modules, by their paths."""
    return {
        f"{path}.{name}".lstrip("."): one
        for path, module in model.named_modules()
        for name, one in {**vars(module), **module._buffers}.items()
        if isinstance(one, Tensor)
    }
