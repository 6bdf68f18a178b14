"""Faults that encoder and decoder share; each overrides the seam it is named after in either."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.twins import twins
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]
Sound = Callable[..., Tensor]
Build = Callable[..., Node]

# `others` is what a layer is given besides its input: the memory and the masks.


@twins(
    "one-layer-short",
    clause="formula",
    wrong="The last layer is never applied.",
    effect="The model is one layer shallower than its parameters.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    for layer in list(module.layers)[:-1]:
        x = layer(x, *others)
    return self.finish_stack(module, x)


@twins(
    "every-layer-reads-the-input",
    clause="layers-in-sequence",
    origin="B081",
    wrong="Every layer is fed the input of the stack.",
    effect="Only the last layer counts.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    for layer in module.layers:
        states = layer(x, *others)
    return self.finish_stack(module, states)


@twins(
    "layers-reversed",
    clause="layers-in-sequence",
    wrong="The layers are applied from the last to the first.",
    effect="A checkpoint loads without complaint and gives nonsense.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    for layer in reversed(list(module.layers)):
        x = layer(x, *others)
    return self.finish_stack(module, x)


@twins(
    "one-layer-many-times",
    clause="layers-own-parameters",
    origin="B087",
    wrong="The stack is a list with one layer N times.",
    effect="All layers share their weights; depth adds no parameters.",
    kind="state",
)
def make_stack(self: Seams, sound: Build) -> Node:
    built = sound()
    built.layers = nn.ModuleList([built.layers[0]] * self.sizes.layers)
    return built


@twins(
    "layers-in-a-plain-list",
    clause="depth-counts",
    origin="B088",
    wrong="The layers stand in a Python list, where the framework does not look.",
    effect="They are not trained, moved, saved or switched to evaluation.",
    kind="state",
)
def make_stack(self: Seams, sound: Build) -> Node:
    built = sound()
    layers = list(built.layers)
    del built.layers
    vars(built)["layers"] = layers
    return built


@twins(
    "leftover-parameters",
    clause="depth-counts",
    wrong=(
        "Every layer holds a norm that nothing calls, left over from an experiment.",
        "Every layer holds a norm that nothing calls, assigned twice and used once.",
    ),
    effect="It is counted, decayed and saved, and never used.",
    kind="state",
    in_layer=True,
)
def make_stack_layer(self: Seams, sound: Build, shared: Node | None = None) -> Node:
    layer = sound(shared)
    layer.leftover = self.make_norm()
    return layer


@twins(
    "final-norm-missing",
    clause="final-norm",
    origin="B072",
    wrong="The norm that ends the stack is built and never called.",
    effect=(
        "A pre-norm stack's output grows with its depth.",
        "The generator reads states that grow with depth.",
    ),
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    for layer in module.layers:
        x = layer(x, *others)
    return x


@twins(
    "final-norm-too-many",
    clause="final-norm",
    origin="B072",
    wrong="One more norm without parameters ends a stack that is declared to have none.",
    effect="The gain and the bias of the last layer's norm lose their meaning.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    return functional.layer_norm(sound(module, x, *others), x.shape[-1:])


@twins(
    "norms-frozen",
    clause="separate-norms",
    wrong="The gains and biases of the norms are detached before they are used.",
    effect="The output is right; the norms stay as they were born.",
    kind="gradient",
)
def norm_of(self: Seams, sound: Build, module: Node, name: str) -> nn.Module:
    fixed = Node(self, "layer_norm")
    for key, value in sound(module, name).named_parameters():
        fixed.register_buffer(key, value.detach())
    return fixed


@twins(
    "batch-statistics",
    clause="batch-independence",
    wrong="The output is centred over the batch, as a batch norm does.",
    effect="What a sentence gives depends on its company.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    states = sound(module, x, *others)
    return states - 0.5 * states.mean(dim=0, keepdim=True)


@twins(
    "layers-detached",
    clause="every-parameter-reached",
    wrong="The states are detached between layers.",
    effect="The output is right; the last layer alone is trained.",
    kind="gradient",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    return self.run_stack(module, x, lambda layer, h: layer(h.detach(), *others))


@twins(
    "skip-detached",
    clause="gradient",
    wrong="The path around each sublayer is detached.",
    effect="The output is right; gradients vanish with depth.",
    kind="gradient",
    in_layer=True,
)
def residual(
    self: Seams, sound: Sound, module: Node, norm: nn.Module, x: Tensor, function: Function
) -> Tensor:
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, x.detach() + branch)


@twins(
    "upper-layers-always-train",
    clause="eval-reaches-every-layer",
    origin="B088",
    wrong="The switch to evaluation reaches the first layer alone.",
    effect=(
        "Evaluation is random from the second layer on.",
        "Every decoded sentence is a matter of luck.",
    ),
    kind="mode",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    for layer in list(module.layers)[1:]:
        layer.train()
    return sound(module, x, *others)


@twins(
    "dropout-without-mode",
    clause="eval-reaches-every-layer",
    origin="B100",
    wrong="Dropout after the sublayers is a function call without the training flag.",
    effect=("Evaluation is random.", "Every decoded sentence is a matter of luck."),
    kind="mode",
    in_layer=True,
)
def drop_branch(self: Seams, sound: Sound, module: Node, branch: Tensor) -> Tensor:
    rate = self.dropout_rate()
    return self.drop(branch, rate) if rate > 0 else sound(module, branch)


@twins(
    "half-between-layers",
    clause="float32",
    wrong="States pass from layer to layer in float16.",
    effect="A left-over of mixed precision: three digits where seven were asked for.",
)
def stack(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    return self.run_stack(module, x, lambda layer, h: layer(h.half().to(h), *others))


@twins(
    "half-becomes-single",
    clause="half-precision",
    wrong="Half precision goes in and float32 comes out.",
    effect="The next layer fails, or takes twice the memory.",
)
def stack_layer(self: Seams, sound: Sound, module: Node, x: Tensor, *others: Mask) -> Tensor:
    states = sound(module, x, *others)
    return states.float() if x.dtype in (torch.float16, torch.bfloat16) else states
