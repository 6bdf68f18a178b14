"""Faults in the score of nothing that each head of attention may have."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

SINK = {"attention_sink": "per-head"}
CAUSAL = {**SINK, "attention_causality": "built-in"}


@fault(
    "multi_head_attention.sink-missing",
    "attention-sink",
    seam="weigh_keys",
    origin="vllm-project/vllm PR#52156",
    choices=SINK,
)
def sink_missing(self: Hooks, module: Node, raw: Tensor) -> Tensor:
    """The sinks are loaded and not used. Heads that attend to nothing attend to the first token."""
    return self.weigh(raw)


@fault(
    "multi_head_attention.sink-undeclared",
    "attention-sink",
    seam="weigh_keys",
    origin="M122",
    components=("attention",),
)
def sink_undeclared(self: Hooks, module: Node, raw: Tensor) -> Tensor:
    """The softmax has 1 more in its denominator. Checkpoints without it give smaller outputs."""
    return self.correct.weigh_with_sink(raw, raw.new_zeros(raw.shape[1], 1, 1))


@fault(
    "multi_head_attention.sink-not-shifted",
    "attention-sink",
    seam="weigh_with_sink",
    origin="M122",
    choices=SINK,
)
def sink_not_shifted(self: Hooks, raw: Tensor, sink: Tensor) -> Tensor:
    """The maximum is subtracted from the scores, and not from the sink. A sink never wins."""
    return self.correct.weigh_with_sink(raw - raw.amax(dim=-1, keepdim=True), sink)


@fault(
    "multi_head_attention.sink-of-every-block",
    "attention-sink",
    seam="weigh_with_sink",
    origin="M121",
    choices=SINK,
)
def sink_of_every_block(self: Hooks, raw: Tensor, sink: Tensor) -> Tensor:
    """The sink is counted in both halves of the keys. Long texts are attended to less."""
    blocks = 2 if raw.shape[-1] > 1 else 1
    return self.correct.weigh_with_sink(raw, sink + math.log(blocks))


@fault(
    "multi_head_attention.sink-scaled",
    "attention-sink",
    seam="sink_scores",
    origin="M121",
    choices=SINK,
)
def sink_scaled(self: Hooks, module: Node) -> Tensor:
    """The sink is divided by the root of the head's width, as scores are. All shares differ."""
    return self.correct.sink_scores(module) / math.sqrt(self.head_width())


@fault(
    "multi_head_attention.sink-bounded",
    "attention-sink",
    seam="sink_scores",
    origin="M121",
    choices={**SINK, "score_cap": 1.5},
)
def sink_bounded(self: Hooks, module: Node) -> Tensor:
    """The soft cap of the scores bounds the sink as well. High sinks lose their share."""
    return self.cap_scores(self.correct.sink_scores(module), float(self.choices.score_cap))


@fault(
    "multi_head_attention.sink-renormalised",
    "attention-sink",
    seam="weigh_with_sink",
    choices=SINK,
)
def sink_renormalised(self: Hooks, raw: Tensor, sink: Tensor) -> Tensor:
    """The weights are divided by their sum once more. The sinks cancel, and are not trained."""
    weights = self.correct.weigh_with_sink(raw, sink)
    return weights / weights.sum(dim=-1, keepdim=True)


@fault("multi_head_attention.sink-of-one-head", "attention-sink", seam="sink_scores", choices=SINK)
def sink_of_one_head(self: Hooks, module: Node) -> Tensor:
    """All heads have the sink of the first. The other ones are never trained."""
    found = self.correct.sink_scores(module)
    return found[:1].expand_as(found)


@fault(
    "multi_head_attention.sink-without-exponential",
    "attention-sink",
    seam="weigh_with_sink",
    choices=SINK,
)
def sink_without_exponential(self: Hooks, raw: Tensor, sink: Tensor) -> Tensor:
    """The sink is added to the denominator as it is. A negative one makes the weights too large."""
    total = raw.logsumexp(dim=-1, keepdim=True).exp()
    return self.weigh(raw) * total / (total + sink)


@fault(
    "multi_head_attention.sink-in-the-first-key",
    "attention-sink",
    seam="weigh_with_sink",
    choices=CAUSAL,
)
def sink_in_the_first_key(self: Hooks, raw: Tensor, sink: Tensor) -> Tensor:
    """The share of the sink is given to the first key. Its value is added to every output."""
    weights = self.correct.weigh_with_sink(raw, sink)
    first = torch.zeros_like(weights)
    first[..., 0] = 1.0 - weights.sum(dim=-1)
    return weights + first


@fault(
    "multi_head_attention.sink-not-trained",
    "gradient",
    seam="sink_scores",
    origin="ISEEKYAN/Megatron-LM PR#205",
    choices=SINK,
)
def sink_not_trained(self: Hooks, module: Node) -> Tensor:
    """The sinks have no gradient. They stay as they were initialised."""
    return self.correct.sink_scores(module).detach()
