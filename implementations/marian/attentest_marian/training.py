"""What the `Trainer` of transformers trains with by default: its loss, schedule and optimiser."""

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup
from transformers.trainer_pt_utils import LabelSmoother

from attentest_spec import Sizes


def smoother(sizes: Sizes) -> LabelSmoother:
    """Build the loss, which leaves padding out."""
    return LabelSmoother(epsilon=sizes.smoothing, ignore_index=sizes.target_pad)


def smoothed(built: LabelSmoother, output: Tensor, target: Tensor) -> Tensor:
    """Return the loss of logits (B, T, V) and targets (B, T)."""
    loss: Tensor = built({"logits": output}, target)
    return loss


def rate(sizes: Sizes, step: int) -> float:
    """Return the rate of the optimiser once all updates before `step`, at least 1, are done."""
    if step < 1:
        raise ValueError(f"The step is {step}; the first one is 1.")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=sizes.factor)
    optimizer.param_groups[0]["initial_lr"] = sizes.factor
    scheduler = get_linear_schedule_with_warmup(
        optimizer, sizes.warmup, sizes.total_steps, last_epoch=step - 2
    )
    found: float = scheduler.get_last_lr()[0]
    return found


def updates(sizes: Sizes, values: Tensor, gradients: Tensor, rates: Tensor) -> Tensor:
    """Return the parameters (T, N) after each update by torch's AdamW, the Trainer's default."""
    held = nn.Parameter(values.clone())
    optimizer = torch.optim.AdamW(
        [held], betas=(0.9, 0.999), eps=1e-8, weight_decay=sizes.weight_decay
    )
    found = []
    for gradient, one in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = float(one)
        held.grad = gradient.clone()
        optimizer.step()
        found.append(held.detach().clone())
    return torch.stack(found)


def clipped(sizes: Sizes, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Return the gradients (N,) of several parameters, clipped in place as the Trainer does."""
    parts = torch.split(gradients, groups.tolist())
    parameters = [nn.Parameter(torch.zeros_like(one)) for one in parts]
    for one, gradient in zip(parameters, parts, strict=True):
        one.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, float(limit))
    return torch.cat([one.grad for one in parameters if one.grad is not None])
