"""Calls that keep no gradients by themselves, as those of code for inference alone."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attentest_spec.contract import Unsupported


def keeps_no_gradients(built: object, call: Callable[[], object]) -> bool:
    """Say whether `call`, made with gradients on, has switched them off for all modules in `built`.

    That is a decorator of its forward, `torch.no_grad` or `torch.inference_mode`, and nothing that
    detaches a tensor on its way. Training such code fails at the first step, in plain sight.
    """
    if not isinstance(built, nn.Module):
        return False
    seen: list[bool] = []

    def note(*_: object) -> None:
        seen.append(torch.is_grad_enabled())

    inside = [one for one in built.modules() if one is not built]
    hooks = [one.register_forward_pre_hook(note) for one in inside]
    try:
        with torch.enable_grad():
            call()
    finally:
        for hook in hooks:
            hook.remove()
    return bool(seen) and not any(seen)


def demand_gradients(built: object, output: Tensor, call: Callable[[], object]) -> None:
    """Raise Unsupported where `call`, which gave `output`, keeps no gradients by itself."""
    if not output.requires_grad and (output.is_inference() or keeps_no_gradients(built, call)):
        raise Unsupported("its call switches gradients off")
