"""Faults of the chapter `feed_forward`: each function overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Node, Seams


@fault(
    "feed_forward.activation-after-second-map",
    clause="feed_forward.formula",
    wrong="The activation stands after the second map, not between the two.",
    effect="No output is ever negative.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.activation(self.contract(module, self.expand(module, x)))


@fault(
    "feed_forward.hidden-scaled",
    clause="feed_forward.formula",
    wrong="The hidden layer is divided by the root of its width.",
    effect="It trains, and weights from elsewhere give other numbers.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, x * x.shape[-1] ** -0.5)


@fault(
    "feed_forward.skip-inside",
    clause="feed_forward.formula",
    wrong="The input is added inside, and once more by the residual connection.",
    effect="The skip counts twice.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x) + x


@fault(
    "feed_forward.argument-ignored",
    clause="feed_forward.activation",
    origin="B080",
    wrong="The activation is ReLU, whatever was asked for.",
    effect="Close to GELU far from zero, and other numbers around it.",
    choices={"activation": "gelu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x.clamp(min=0)


@fault(
    "feed_forward.gelu-by-tanh",
    clause="feed_forward.activation",
    wrong="GELU is approximated by a hyperbolic tangent.",
    effect="Off by up to five ten-thousandths at every hidden unit.",
    choices={"activation": "gelu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return functional.gelu(x, approximate="tanh")


@fault(
    "feed_forward.leaky",
    clause="feed_forward.activation",
    wrong="The ReLU leaks a hundredth of what is negative.",
    effect="Units are never quite off.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return functional.leaky_relu(x, 0.01)


@fault(
    "feed_forward.squeezed",
    clause="feed_forward.shapes",
    wrong="Axes of length one are dropped from the output.",
    effect="A batch of one, or a sentence of one word, changes its shape.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x).squeeze()


@fault(
    "feed_forward.always-float32",
    clause="feed_forward.shapes",
    wrong="The output is float32, whatever came in.",
    effect="float64 loses half of its digits.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x).float()


@fault(
    "feed_forward.centred-over-sentence",
    clause="feed_forward.position-wise",
    wrong="The hidden layer is centred over the positions.",
    effect="Every word depends on the others, pads and the future included.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    inner = self.sound.expand(module, x)
    return inner - inner.mean(dim=-2, keepdim=True) if inner.shape[-2] > 1 else inner


@fault(
    "feed_forward.centred-over-batch",
    clause="feed_forward.position-wise",
    wrong="The input is centred over the samples, as in batch normalisation.",
    effect="A sentence depends on the ones it was batched with.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x - x.mean(dim=0, keepdim=True))


@fault(
    "feed_forward.no-activation",
    clause="feed_forward.activation-between",
    origin="B078",
    wrong="The activation is made and never called.",
    effect="Two linear maps are one; it trains to less than it could.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x


@fault(
    "feed_forward.mean-slope",
    clause="feed_forward.activation-between",
    wrong="Every unit is halved, which is the mean slope of a ReLU, wherever it lies.",
    effect="The hidden layer is linear for every input.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return 0.5 * x


@fault(
    "feed_forward.inner-bias-dropped",
    clause="feed_forward.both-biases",
    wrong="The first bias is not added.",
    effect="Invisible on fresh weights; every hidden unit switches at zero.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x) - self.sound.expand(module, torch.zeros_like(x))


@fault(
    "feed_forward.outer-bias-dropped",
    clause="feed_forward.both-biases",
    wrong="The second bias is not added.",
    effect="Invisible on fresh weights.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, x) - self.sound.contract(module, torch.zeros_like(x))


@fault(
    "feed_forward.hidden-detached",
    clause="feed_forward.every-parameter-reached",
    wrong="The hidden layer is detached from the graph.",
    effect="The first map stays as it was born.",
    kind="gradient",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.sound.drop_inner(module, x.detach())


@fault(
    "feed_forward.outer-map-detached",
    clause="feed_forward.every-parameter-reached",
    wrong="The second map is applied to a hidden layer of its own that no gradient leaves.",
    effect="Values are right; the second map is trained by half.",
    kind="gradient",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    whole = self.sound.contract(module, x)
    return 0.5 * whole + 0.5 * whole.detach()


@fault(
    "feed_forward.straight-through",
    clause="feed_forward.gradient",
    wrong="The backward pass of the activation is that of the identity.",
    effect="Values are right; units that are off are trained.",
    kind="gradient",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x + (self.sound.activation(x) - x).detach()


@fault(
    "feed_forward.input-detached",
    clause="feed_forward.gradient",
    wrong="The input is detached from the graph.",
    effect="Nothing before the network is trained through it.",
    kind="gradient",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.expand(module, x.detach())


@fault(
    "feed_forward.sigmoid-overflows",
    clause="feed_forward.large-inputs",
    wrong="The sigmoid is written as exp(x) / (1 + exp(x)).",
    effect="Infinity over infinity far out.",
    choices={"activation": "silu"},
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x * torch.exp(x) / (1.0 + torch.exp(x))


@fault(
    "feed_forward.relu-with-a-ceiling",
    clause="feed_forward.large-inputs",
    wrong="The ReLU is cut off at 100.",
    effect="Ordinary activations hide it.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    return x.clamp(min=0, max=100)


@fault(
    "feed_forward.activation-lost-in-copies",
    clause="feed_forward.activation-survives-copies",
    origin="B080",
    wrong="The activation is kept outside what a copy takes along, and falls back to GELU.",
    effect="Other numbers come out of the same weights after a deep copy or a pickle.",
    kind="state",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    # A copy carries the identity of the original, which is not its own.
    if module.__dict__.setdefault("known_as", id(module)) == id(module):
        return self.sound.feed_forward(module, x)
    return self.contract(module, functional.gelu(self.expand(module, x)))


@fault(
    "feed_forward.dropout-in-evaluation",
    clause="feed_forward.dropout-only-in-training",
    wrong="A functional dropout does not ask for the mode.",
    effect="Evaluation is random.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.drop(x, self.dropout_rate()) if self.dropout_rate() > 0 else x


@fault(
    "feed_forward.rescaled-in-evaluation",
    clause="feed_forward.dropout-only-in-training",
    wrong="Evaluation multiplies by what dropout keeps, though training has divided by it.",
    effect="Every number is shifted once there is a dropout rate.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    return self.dropout(module, x) if module.training else x * (1.0 - self.dropout_rate())


@fault(
    "feed_forward.float32-in-bfloat16",
    clause="feed_forward.float32",
    wrong="The hidden layer of a float32 call is kept in bfloat16.",
    effect="Five digits are lost, silently.",
)
def activation(self: Seams, x: Tensor) -> Tensor:
    sound = self.sound.activation(x)
    return sound.bfloat16().to(x.dtype) if x.dtype == torch.float32 else sound


@fault(
    "feed_forward.float32-in-float16",
    clause="feed_forward.float32",
    wrong="The first product of a float32 call is rounded to float16.",
    effect="Four digits are lost, silently.",
)
def expand(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.expand(module, x)
    return sound.half().to(x.dtype) if x.dtype == torch.float32 else sound


@fault(
    "feed_forward.overflow-in-half",
    clause="feed_forward.half-precision",
    origin="B126",
    wrong="The hidden layer is scaled up by a hundred thousand and down again.",
    effect="float16 is infinite on the way.",
)
def contract(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.contract(module, (x * 1e5) / 1e5)


@fault(
    "feed_forward.not-narrowed-back",
    clause="feed_forward.half-precision",
    wrong="A half-precision result is returned in float32.",
    effect="What follows is asked to multiply unlike precisions.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    sound = self.sound.feed_forward(module, x)
    return sound.float() if x.dtype in (torch.float16, torch.bfloat16) else sound


@fault(
    "feed_forward.rectified-in-place",
    clause="feed_forward.input-untouched",
    wrong="An activation in place is applied to the caller's own array as well.",
    effect="The residual connection adds a rectified input.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.feed_forward(module, x)
    x.data.clamp_(min=0)
    return result


@fault(
    "feed_forward.output-written-back",
    clause="feed_forward.input-untouched",
    wrong="The output is also written into the input.",
    effect="The residual connection adds the output twice.",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    result = self.sound.feed_forward(module, x)
    x.data.copy_(result)
    return result


@fault(
    "feed_forward.positions-beyond-a-chunk",
    clause="feed_forward.position-wise",
    wrong="Positions are taken in chunks of 32, and what is left over gets the outer bias alone.",
    effect="The ends of long sentences are lost.",
    specimens=("plain",),
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    whole = x.shape[1] if x.shape[1] < 32 else x.shape[1] // 32 * 32
    output = self.sound.feed_forward(module, x[:, :whole])
    rest = module.outer.bias.expand(len(x), x.shape[1] - whole, -1)
    return torch.cat((output, rest), dim=1)


@fault(
    "feed_forward.dropout-not-scaled",
    clause="feed_forward.dropout-only-in-training",
    wrong="Numbers are dropped in training, and those that stay are not scaled up.",
    effect="Activations are smaller in training than ever after.",
    kind="mode",
)
def drop_inner(self: Seams, module: nn.Module, x: Tensor) -> Tensor:
    rate = self.dropout_rate() if self.is_training(module) else 0.0
    return x * (torch.rand_like(x) >= rate)


@fault(
    "feed_forward.input-detached-in-training",
    clause="feed_forward.gradient",
    wrong="In training mode no gradient reaches the input.",
    effect="Gradient checks in evaluation mode pass, and lower layers train along the skip alone.",
    kind="gradient",
)
def feed_forward(self: Seams, module: Node, x: Tensor) -> Tensor:
    return self.sound.feed_forward(module, x.detach() if module.training else x)
