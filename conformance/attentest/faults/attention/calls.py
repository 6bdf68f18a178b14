"""Faults in modes, memory layouts and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams


@fault(
    "attention.dropout-scale-kept",
    clause="attention.convex-hull",
    wrong="The factor 1 / (1 - p) of dropout is applied in evaluation mode as well.",
    effect="Outputs are a tenth too large.",
)
def drop_weights(self: Seams, module: nn.Module, weights: Tensor) -> Tensor:
    return weights / 0.9


@fault(
    "attention.layout-assumed",
    clause="attention.strided-inputs",
    wrong="The memory of the keys is read as if it were contiguous.",
    effect="Transposed views give other keys, without an error.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    strides = torch.empty(key.shape, device="meta").stride()
    return self.sound.scores(query, key.as_strided(key.shape, strides), factor)


@fault(
    "attention.view-of-strided",
    clause="attention.strided-inputs",
    wrong="Samples and heads are merged by a view, which transposed inputs do not allow.",
    effect="It raises for some inputs and not for others of the same shape.",
    kind="loud",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    batch, heads, keys, width = value.shape
    return self.sound.mix(weights, value.view(batch * heads * keys * width).view(value.shape))


@fault(
    "attention.dropout-in-evaluation",
    clause="attention.deterministic",
    origin="B100",
    wrong="Dropout on the weights does not know the mode.",
    effect="Evaluation is random, and a little worse than it could be.",
    kind="mode",
)
def drop_weights(self: Seams, module: nn.Module, weights: Tensor) -> Tensor:
    rate = self.dropout_rate()
    return self.sound.drop(weights, rate) if rate > 0 else weights


@fault(
    "attention.query-scaled-in-place",
    clause="attention.deterministic",
    wrong="The query is scaled in place, in the caller's own tensor.",
    effect="A second call with the same query scales it again.",
    kind="state",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    with torch.no_grad():
        query.mul_(factor)
    return self.sound.scores(query, key, 1.0)


@fault(
    "attention.mask-remembered",
    clause="attention.deterministic",
    wrong="A call without a mask uses the mask of the call before, where it fits.",
    effect="What a sentence gives depends on the one before it.",
    kind="state",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is not None:
        self.memory["mask"] = mask
    last: Mask = self.memory.get("mask")
    fits = last is not None and last.shape[-1] == raw.shape[-1] and last.shape[-2] == 1
    return self.sound.mask_scores(raw, last if mask is None and fits else mask)


@fault(
    "attention.weights-in-one-buffer",
    clause="attention.deterministic",
    wrong="The returned weights lie in a buffer that the next call of the same shape overwrites.",
    effect="Weights kept for a plot turn into those of the last sentence.",
    kind="state",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    if torch.is_grad_enabled():
        return used
    kept: Tensor = self.memory.setdefault(str(used.shape), torch.empty_like(used))
    return kept.copy_(used)
