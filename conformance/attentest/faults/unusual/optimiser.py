"""Unusual implementations of Adam and of the clipping of gradients."""

import torch
from torch import Tensor

from attentest.faults.unusual.member import member
from attentest_spec import Sizes
from attentest_spec.choices import Value
from attentest_spec.torch import Recipe, TorchBackend

BETA1, BETA2, EPSILON = 0.9, 0.98, 1e-9


def history(values: Tensor, gradients: Tensor, rates: Tensor) -> Tensor:
    """Sum up the whole history of gradients at every update, and keep no state."""
    found = []
    for number, rate in enumerate(rates, start=1):
        ages = torch.arange(number - 1, -1, -1, dtype=gradients.dtype)[:, None]
        seen = gradients[:number]
        first, second = BETA1**ages, BETA2**ages
        mean = (first * seen).sum(0) / first.sum(0)  # the weights add up to the correction
        square = (second * seen**2).sum(0) / second.sum(0)
        values = values - rate * mean / (square.sqrt() + EPSILON)
        found.append(values)
    return torch.stack(found)


def one_by_one(values: Tensor, gradients: Tensor, rates: Tensor) -> Tensor:
    """Update each number by itself, in floats of Python."""
    found = torch.zeros_like(gradients)
    for place, value in enumerate(values.tolist()):
        mean = square = 0.0
        for number, (gradient, rate) in enumerate(
            zip(gradients[:, place].tolist(), rates.tolist(), strict=True), start=1
        ):
            mean += (1 - BETA1) * (gradient - mean)
            square += (1 - BETA2) * (gradient * gradient - square)
            root = (square / (1 - BETA2**number)) ** 0.5
            value -= rate / (1 - BETA1**number) * mean / (root + EPSILON)
            found[number - 1, place] = value
    return found


def with_torch(sizes: Sizes) -> torch.optim.AdamW:
    """Use the optimiser of torch with its fused loop over arrays."""
    held = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    return torch.optim.AdamW(
        [held], betas=(BETA1, BETA2), eps=EPSILON, weight_decay=sizes.weight_decay, foreach=True
    )


def updates_of_torch(built: torch.optim.AdamW, values: Tensor, *run: Tensor) -> Tensor:
    """Give the optimiser other parameters, and forget the state of the last run."""
    held = torch.nn.Parameter(values.clone())
    built.state.clear()
    built.param_groups[0]["params"] = [held]
    found = []
    for gradient, rate in zip(*run, strict=True):
        built.param_groups[0]["lr"] = rate.item()
        held.grad = gradient.clone()
        built.step()
        found.append(held.detach().clone())
    return torch.stack(found)


def by_unit_vector(gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Multiply the unit vector by the smaller of the norm and the limit."""
    largest = gradients.abs().max()
    if largest == 0:
        return gradients.clone()
    norm = largest * (gradients / largest).norm()
    return gradients.clone() if norm <= limit else gradients / norm * limit


def _member(name: str, recipes: dict[str, Recipe], title: str, **choices: Value) -> TorchBackend:
    return member(f"optimiser-{name}", title, recipes, choices)


MEMBERS = (
    _member(
        "of-history",
        {"optimiser": Recipe(build=lambda sizes: history)},
        "Adam that sums up all gradients at every update",
    ),
    _member(
        "one-by-one",
        {"optimiser": Recipe(build=lambda sizes: one_by_one)},
        "Adam on numbers of Python, with means that move by a difference",
    ),
    _member(
        "of-torch",
        {"optimiser": Recipe(build=with_torch, call=updates_of_torch)},
        "AdamW of torch, one object for all runs",
        weight_decay="decoupled",
    ),
    _member(
        "unit-vector",
        {"gradient_clipping": Recipe(build=lambda sizes: by_unit_vector)},
        "clipping as a unit vector times a length",
    ),
)
