"""The adapters of the library's optimiser, schedule and clipping of gradients."""

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn

from attentest_spec import Sizes
from attentest_torch_nn import optim


def rate(sizes: Sizes, step: int) -> float:
    """Return the rate of the optimiser once all updates before `step` are done."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=sizes.factor)
    optim.warm_up(optimizer, sizes.d_model, sizes.warmup, done=step - 1)
    rate: float = optimizer.param_groups[0]["lr"]
    return rate


def updates(
    sizes: Sizes, values: Tensor, gradients: Iterable[Tensor], rates: Iterable[Tensor]
) -> Iterator[Tensor]:
    """Yield the parameters (N) after each update by the library's Adam."""
    held = nn.Parameter(values.clone())
    optimizer = optim.adam([held])
    for gradient, rate in zip(gradients, rates, strict=True):
        optimizer.param_groups[0]["lr"] = float(rate)
        held.grad = gradient.clone()
        optimizer.step()
        yield held.detach().clone()


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
    optimizer, found = optim.adam(arrays), []
    for number, rate in enumerate(rates.tolist()):
        optimizer.param_groups[0]["lr"] = rate
        parts = torch.split(gradients[number], groups.tolist())
        for array, part, there in zip(arrays, parts, present[number], strict=True):
            array.grad = part.clone() if there else None
        optimizer.step()
        found.append(torch.cat([one.detach() for one in arrays]))
        if number + 1 == saved:
            state = optimizer.state_dict()
            optimizer = optim.adam(arrays)
            optimizer.load_state_dict(state)
    return torch.stack(found)


def clipped(sizes: Sizes, gradients: Tensor, groups: Tensor, limit: Tensor) -> Tensor:
    """Return the gradients (N,) of several parameters, clipped in place by the library."""
    parts = torch.split(gradients, groups.tolist())
    parameters = [nn.Parameter(torch.zeros_like(one)) for one in parts]
    for one, gradient in zip(parameters, parts, strict=True):
        one.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, float(limit))
    return torch.cat([one.grad for one in parameters if one.grad is not None])
