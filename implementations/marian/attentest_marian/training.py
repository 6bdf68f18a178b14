"""Loss, schedule and optimiser that the `Trainer` of transformers has by default.

The loss adds up in float32, whatever it is given.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup
from transformers.trainer_pt_utils import LabelSmoother

from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe


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


def adamw(sizes: Sizes, arrays: Sequence[nn.Parameter], kinds: Sequence[int]) -> torch.optim.AdamW:
    """Build torch's AdamW, the default of the Trainer, with its two groups of parameters."""
    groups = [
        {"params": [one for one, kind in zip(arrays, kinds, strict=True) if (kind == 0) == decays]}
        | {"weight_decay": sizes.weight_decay if decays else 0.0}
        for decays in (True, False)
    ]
    return torch.optim.AdamW(groups, betas=(0.9, 0.999), eps=1e-8)


def updates(sizes: Sizes, values: Tensor, gradients: Tensor, rates: Tensor) -> Tensor:
    """Return the parameters (T, N) of one array after each update."""
    whole, present = torch.tensor([len(values)]), torch.ones(len(rates), 1)
    return grouped(sizes, values, gradients, rates, whole, torch.tensor([0]), present, 0)


def grouped(
    sizes: Sizes,
    values: Tensor,
    gradients: Tensor,
    rates: Tensor,
    groups: Tensor,
    kinds: Tensor,
    present: Tensor,
    saved: int,
) -> Tensor:
    """Return the parameters (T, N) of several arrays after each update."""
    arrays = [nn.Parameter(one.clone()) for one in torch.split(values, groups.tolist())]
    optimizer, found = adamw(sizes, arrays, kinds.tolist()), []
    for number, rate in enumerate(rates.tolist()):
        for group in optimizer.param_groups:
            group["lr"] = rate
        parts = torch.split(gradients[number], groups.tolist())
        for array, part, there in zip(arrays, parts, present[number], strict=True):
            array.grad = part.clone() if there else None
        optimizer.step()
        found.append(torch.cat([one.detach() for one in arrays]))
        if number + 1 == saved:
            state = optimizer.state_dict()
            optimizer = adamw(sizes, arrays, kinds.tolist())
            optimizer.load_state_dict(state)
    return torch.stack(found)


def clipped(sizes: Sizes, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Return the gradients (N,) of several parameters, clipped in place as the Trainer does."""
    parts = torch.split(gradients, groups.tolist())
    parameters = [nn.Parameter(torch.zeros_like(one)) for one in parts]
    for one, gradient in zip(parameters, parts, strict=True):
        one.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, float(limit))
    return torch.cat([one.grad for one in parameters if one.grad is not None])


CHOICES: dict[str, Value] = {
    "loss_input": "logits",
    "smoothed_mass": "all-words",
    "loss_normaliser": "tokens",
    "loss_measure": "cross-entropy",
    "loss_without_targets": "nan",
    "schedule": "linear",
    "first_step": "zero",
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "weight_decay": "decoupled",
    "decay_groups": "weights",
    "update_count": "own",
    "clip_epsilon": 1e-6,
}
"""The choices of training."""

RECIPES = {
    "loss": Recipe(smoother, smoothed),
    "learning_rate": Recipe(lambda sizes: sizes, rate),
    "optimiser": Recipe(lambda sizes: sizes, updates),
    "grouped_optimiser": Recipe(lambda sizes: sizes, grouped),
    "gradient_clipping": Recipe(lambda sizes: sizes, clipped),
}
"""The recipes of training."""
