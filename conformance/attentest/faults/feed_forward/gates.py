"""Faults in the gate of a hidden layer."""

import torch
from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

SWIGLU = {"feed_forward_gate": "gated", "activation": "silu"}
GEGLU = {"feed_forward_gate": "gated", "activation": "gelu"}
GLU = {"feed_forward_gate": "gated", "activation": "sigmoid"}


@fault("feed_forward.gate-exchanged", "gate", seam="join_gate", origin="M112", choices=SWIGLU)
def gate_exchanged(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The activation is on the value, and the gate multiplies as it is. A checkpoint loads."""
    return self.activation(inner) * gate


@fault(
    "feed_forward.activation-of-the-product",
    "gate",
    seam="join_gate",
    origin="M113",
    choices=SWIGLU,
)
def activation_of_the_product(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The activation is applied to the product of gate and value. It trains."""
    return self.activation(gate * inner)


@fault("feed_forward.activation-on-both", "gate", seam="join_gate", origin="M113", choices=SWIGLU)
def activation_on_both(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The activation is applied to gate and value. Hidden units are hardly ever negative."""
    return self.activation(gate) * self.activation(inner)


@fault("feed_forward.gate-times-itself", "gate", seam="join_gate", origin="M115", choices=SWIGLU)
def gate_times_itself(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate multiplies itself; the value is not used. A third of the parameters is idle."""
    return self.activation(gate) * gate


@fault("feed_forward.gate-without-activation", "gate", seam="join_gate", choices=SWIGLU)
def gate_without_activation(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate has no activation. The product of two linear maps trains, to a worse model."""
    return gate * inner


@fault("feed_forward.gate-added", "gate", seam="join_gate", choices=SWIGLU)
def gate_added(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate is added to the value. It opens and closes nothing."""
    return self.activation(gate) + inner


@fault(
    "feed_forward.gate-left-out",
    "gate",
    seam="join_gate",
    origin="google-research/timesfm#493",
    choices=SWIGLU,
)
def gate_left_out(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate is computed and not used. A plain network is what remains."""
    return self.activation(inner)


@fault("feed_forward.halves-for-pairs", "gate", seam="join_gate", origin="M116", choices=SWIGLU)
def halves_for_pairs(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """A packed result is read in pairs where it holds two halves. A checkpoint loads."""
    packed = torch.cat([gate, inner], dim=-1)
    return self.activation(packed[..., ::2]) * packed[..., 1::2]


@fault("feed_forward.sigmoid-for-silu", "activation", seam="join_gate", choices=SWIGLU)
def sigmoid_for_silu(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate is a sigmoid where SiLU is declared. It loses the size of the gate's input."""
    return torch.sigmoid(gate) * inner


@fault("feed_forward.silu-with-beta", "activation", seam="join_gate", origin="M115", choices=SWIGLU)
def silu_with_beta(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """SiLU has a slope of its own inside the sigmoid. A checkpoint with a slope of 1 differs."""
    return gate * torch.sigmoid(1.25 * gate) * inner


@fault(
    "feed_forward.gate-gelu-by-tanh",
    "activation",
    seam="join_gate",
    origin="sgl-project/sglang#37609",
    choices=GEGLU,
)
def gate_gelu_by_tanh(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The GELU of the gate is approximated by tanh. Hidden units are off by up to 5e-4."""
    return functional.gelu(gate, approximate="tanh") * inner


@fault("feed_forward.gate-silu-for-sigmoid", "activation", seam="join_gate", choices=GLU)
def gate_silu_for_sigmoid(self: Hooks, gate: Tensor, inner: Tensor) -> Tensor:
    """The gate is SiLU where a sigmoid is declared. It is no longer between 0 and 1."""
    return functional.silu(gate) * inner


@fault("feed_forward.gate-clamped", "large-inputs", seam="open_gate", choices=SWIGLU)
def gate_clamped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The gate is limited to 7. Ordinary inputs hide it."""
    return self.correct.open_gate(module, x).clamp(max=7.0)


@fault(
    "feed_forward.gate-detached",
    "every-parameter-reached",
    seam="open_gate",
    choices=SWIGLU,
    kind="gradient",
)
def gate_detached(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The gate is detached from the graph. It is never trained."""
    return self.correct.open_gate(module, x).detach()


@fault("feed_forward.gate-bias-dropped", "both-biases", seam="open_gate", choices=SWIGLU)
def gate_bias_dropped(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The bias of the gate is not added. Zero biases hide it."""
    zeros = torch.zeros_like(x)
    return self.correct.open_gate(module, x) - self.correct.open_gate(module, zeros)


@fault(
    "feed_forward.gate-with-the-bias-of-the-value",
    "both-biases",
    seam="open_gate",
    origin="NVIDIA/TransformerEngine PR#196",
    choices=SWIGLU,
)
def gate_with_the_bias_of_the_value(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """Gate and value share one bias where each has its own. Zero biases hide it."""
    zeros = torch.zeros_like(x)
    alone = self.correct.open_gate(module, x) - self.correct.open_gate(module, zeros)
    return alone + self.expand(module, zeros)


@fault("feed_forward.gate-of-the-neighbour", "position-wise", seam="open_gate", choices=SWIGLU)
def gate_of_the_neighbour(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The gate is that of the position before. The first position gets that of the last one."""
    return self.correct.open_gate(module, x.roll(1, dims=-2))
