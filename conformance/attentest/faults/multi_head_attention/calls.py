"""Faults in modes, memory layouts and side effects."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "multi_head_attention.dropout-in-evaluation",
    clause="multi_head_attention.deterministic",
    origin="B100",
    wrong="Dropout on the output does not know the mode.",
    effect="Evaluation is random, and a little worse than it could be.",
    kind="mode",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    rate = self.dropout_rate()
    return self.drop(output, rate) if rate > 0 else output


@fault(
    "multi_head_attention.keys-cached",
    clause="multi_head_attention.deterministic",
    wrong="The projected keys of a call are kept and attended by the next one that they fit.",
    effect="What a sentence gives depends on the one before it.",
    kind="state",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "key":
        return projected
    last = self.memory.get("key", projected)
    self.memory["key"] = projected.detach()
    return (projected + last) / 2 if last.shape == projected.shape else projected


@fault(
    "multi_head_attention.query-scaled-in-place",
    clause="multi_head_attention.deterministic",
    wrong="The query is scaled in place, in the caller's own tensor.",
    effect="A second call with the same query scales it again.",
    kind="state",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    with torch.no_grad():
        query.mul_(self.head_width() ** -0.5)
    return output


@fault(
    "multi_head_attention.layout-assumed",
    clause="multi_head_attention.strided-inputs",
    wrong="The memory of the key is read as if it were contiguous.",
    effect="Transposed views give other keys, without an error.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    strides = torch.empty(key.shape, device="meta").stride()
    read = key.as_strided(key.shape, strides)
    return self.sound.multi_head_attention(module, query, read, value, mask)


@fault(
    "multi_head_attention.view-of-strided",
    clause="multi_head_attention.strided-inputs",
    wrong="Samples and positions are merged by a view, which transposed inputs do not allow.",
    effect="It raises for some inputs and not for others of the same shape.",
    kind="loud",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    if name == "output":
        return self.sound.project(module, name, x)
    return self.sound.project(module, name, x.view(-1, x.shape[-1]).view(x.shape))


@fault(
    "multi_head_attention.dropped-weights-not-scaled",
    clause="multi_head_attention.deterministic",
    wrong="Weights are dropped in training, and those that stay are not scaled up.",
    effect="Activations are smaller in training than ever after.",
    kind="mode",
    components=("attention",),
)
def drop_weights(self: Seams, module: nn.Module, weights: Tensor) -> Tensor:
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return weights * (torch.rand_like(weights) >= rate)
