"""Faults on the way to the experts and back, and in the shared expert."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

ADDED = {"shared_expert": "added"}
GATED = {"shared_expert": "gated"}


@fault(
    "mixture_of_experts.weights-on-the-input",
    "formula",
    seam="mix_experts",
    origin="labmlai/annotated_deep_learning_paper_implementations#95",
)
def weights_on_the_input(
    self: Hooks, module: Node, rows: Tensor, chosen: Tensor, weights: Tensor
) -> Tensor:
    """The weights multiply the input of an expert, not its output. The activation sees less."""
    outputs = [
        self.ask_experts(module, rows * weights[:, rank, None], chosen[:, rank, None])
        for rank in range(chosen.shape[1])
    ]
    return torch.cat(outputs, dim=1).sum(dim=1)


@fault(
    "mixture_of_experts.last-expert-wins",
    "formula",
    seam="mix_experts",
    origin="AviSoori1x/makeMoE#2",
)
def last_expert_wins(
    self: Hooks, module: Node, rows: Tensor, chosen: Tensor, weights: Tensor
) -> Tensor:
    """The output of an expert overwrites those before it. Positions with two experts keep one."""
    last = chosen.argmax(dim=-1, keepdim=True)  # the experts work in the order of their numbers
    alone = weights * torch.zeros_like(weights).scatter(-1, last, 1.0)
    return self.correct.mix_experts(module, rows, chosen, alone)


@fault("mixture_of_experts.weights-left-out", "weights", seam="sum_experts")
def weights_left_out(self: Hooks, outputs: Tensor, weights: Tensor) -> Tensor:
    """The outputs of the experts are averaged, without their weights. The router hardly counts."""
    return outputs.mean(dim=1)


@fault("mixture_of_experts.weights-in-another-order", "formula", seam="sum_experts")
def weights_in_another_order(self: Hooks, outputs: Tensor, weights: Tensor) -> Tensor:
    """The weights of a position are in another order than its experts. The least gets the most."""
    return self.correct.sum_experts(outputs, weights.flip(-1))


@fault(
    "mixture_of_experts.not-put-back",
    "position-wise",
    seam="sum_experts",
    origin="deepseek-ai/DeepSeek-V3#780",
)
def not_put_back(self: Hooks, outputs: Tensor, weights: Tensor) -> Tensor:
    """Outputs that are sorted by expert are not put back into the order of the positions.

    A sentence gets the outputs of others; a single position hides it.
    """
    rows, count, width = outputs.shape
    mixed = outputs.transpose(0, 1).reshape(rows, count, width)
    return self.correct.sum_experts(mixed, weights)


@fault("mixture_of_experts.flattened-the-other-way", "position-wise", seam="flatten_rows")
def flattened_the_other_way(self: Hooks, x: Tensor) -> Tensor:
    """Positions are flattened before samples, and restored after them. Sentences are mixed."""
    return self.correct.flatten_rows(x.transpose(0, 1) if x.dim() > 2 else x)


@fault("mixture_of_experts.left-flattened", "shapes", seam="restore_rows")
def left_flattened(self: Hooks, rows: Tensor, x: Tensor) -> Tensor:
    """The output is left flattened. The residual sum broadcasts or fails."""
    return rows


@fault(
    "mixture_of_experts.widened-by-weights",
    "half-precision",
    seam="sum_experts",
    origin="osaurus-ai/vmlx-swift PR#379",
)
def widened_by_weights(self: Hooks, outputs: Tensor, weights: Tensor) -> Tensor:
    """Weights in float32 widen the output. Everything after it is in another precision."""
    return self.correct.sum_experts(outputs, weights).to(
        torch.promote_types(outputs.dtype, torch.float32)
    )


@fault(
    "mixture_of_experts.added-into-the-input",
    "input-untouched",
    seam="mixture_of_experts",
    origin="vllm-project/vllm PR#20152",
)
def added_into_the_input(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Outputs are added into the flattened input. The residual path adds them again."""
    found = self.correct.mixture_of_experts(module, x)
    x.data.add_(found.detach())
    return found


@fault(
    "mixture_of_experts.shared-expert-left-out",
    "shared-expert",
    seam="add_shared",
    origin="divyamakkar0/JAXformer#21",
    choices=ADDED,
)
def shared_expert_left_out(self: Hooks, module: Node, rows: Tensor, mixed: Tensor) -> Tensor:
    """The shared expert is not added. Every position loses what all have in common."""
    return mixed


@fault(
    "mixture_of_experts.shared-gate-ignored",
    "shared-expert",
    seam="gate_shared",
    origin="NousResearch/torchtitan PR#36",
    choices=GATED,
)
def shared_gate_ignored(self: Hooks, module: Node, rows: Tensor, output: Tensor) -> Tensor:
    """The gate of the shared expert is loaded and not used. It counts about twice as much."""
    return output


@fault(
    "mixture_of_experts.shared-gate-of-the-output",
    "shared-expert",
    seam="gate_shared",
    choices=GATED,
)
def shared_gate_of_the_output(self: Hooks, module: Node, rows: Tensor, output: Tensor) -> Tensor:
    """The gate of the shared expert reads its output, not its input. A checkpoint loads."""
    return self.correct.gate_shared(module, output, output)


@fault(
    "mixture_of_experts.shared-gate-without-sigmoid",
    "shared-expert",
    seam="gate_shared",
    choices=GATED,
)
def shared_gate_without_sigmoid(self: Hooks, module: Node, rows: Tensor, output: Tensor) -> Tensor:
    """The gate of the shared expert has no sigmoid. It may be negative, and of any size."""
    return self.linear(module.shared_gate, rows) * output


@fault("mixture_of_experts.one-expert-for-all", "own-parameters", seam="ask_experts")
def one_expert_for_all(self: Hooks, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
    """All experts are one object. The mixture is a single network, at the memory of one."""
    last = torch.full_like(chosen, self.sizes.experts - 1)  # which is loaded over the others
    return self.correct.ask_experts(module, rows, last)


@fault("mixture_of_experts.weights-detached", "gradient", seam="scale_weights", kind="gradient")
def weights_detached(self: Hooks, weights: Tensor) -> Tensor:
    """The weights are detached from the graph. The router is never trained."""
    return self.correct.scale_weights(weights).detach()


@fault(
    "mixture_of_experts.experts-detached",
    "every-parameter-reached",
    seam="ask_experts",
    kind="gradient",
)
def experts_detached(self: Hooks, module: Node, rows: Tensor, chosen: Tensor) -> Tensor:
    """The outputs of the experts are copied without their graph. The router alone is trained."""
    return self.correct.ask_experts(module, rows, chosen).detach()


@fault("mixture_of_experts.router-frozen", "parameters-trained", seam="make_mixture", kind="state")
def router_frozen(self: Hooks) -> Node:
    """The router is not among the trained parameters. It stays as it was initialised."""
    node = self.correct.make_mixture()
    node.router.requires_grad_(False)
    return node
