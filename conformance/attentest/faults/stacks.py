"""Faults that encoder and decoder share: each is written once, for both."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import stack_fault
from attentest.faults.reference_models import Function, Hooks, Mask, Node

Call = Callable[..., Tensor]
Build = Callable[..., Node]

# `others` is what a layer is given besides its input: the memory and the masks.


@stack_fault("one-layer-short", "formula", seam="{side}")
def one_layer_short(self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask) -> Tensor:
    """The last layer is never applied. The model is one layer shallower than its parameters."""
    for layer in list(module.layers)[:-1]:
        x = layer(x, *others)
    return self.finish_stack(module, x)


@stack_fault("every-layer-reads-the-input", "layers-in-sequence", seam="{side}", origin="B081")
def every_layer_reads_the_input(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """Every layer is fed the input of the stack. Only the last layer counts."""
    for layer in module.layers:
        states = layer(x, *others)
    return self.finish_stack(module, states)


@stack_fault("layers-reversed", "layers-in-sequence", seam="{side}")
def layers_reversed(self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask) -> Tensor:
    """The layers are applied in reverse order. A checkpoint loads and gives nonsense."""
    for layer in reversed(list(module.layers)):
        x = layer(x, *others)
    return self.finish_stack(module, x)


@stack_fault(
    "one-layer-many-times", "layers-own-parameters", seam="make_{side}", origin="B087", kind="state"
)
def one_layer_many_times(self: Hooks, correct: Build) -> Node:
    """The stack is a list of one layer N times. All layers share their weights."""
    built = correct()
    built.layers = nn.ModuleList([built.layers[0]] * self.sizes.layers)
    return built


@stack_fault(
    "layers-in-a-plain-list", "depth-counts", seam="make_{side}", origin="B088", kind="state"
)
def layers_in_a_plain_list(self: Hooks, correct: Build) -> Node:
    """The layers are in a plain Python list. They are not trained, moved, saved or switched."""
    built = correct()
    layers = list(built.layers)
    del built.layers
    vars(built)["layers"] = layers
    return built


@stack_fault(
    "leftover-parameters", "depth-counts", seam="make_{side}_layer", kind="state", in_layer=True
)
def leftover_parameters(self: Hooks, correct: Build, shared: Node | None = None) -> Node:
    """Every layer holds a norm that nothing calls, left over from an experiment.

    It is counted, decayed and saved, and never used.
    """
    layer = correct(shared)
    layer.leftover = self.make_chosen_norm()
    return layer


@stack_fault(
    "final-norm-missing",
    "final-norm",
    seam="{side}",
    origin="B072",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def final_norm_missing(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """The final norm is built and never called. The output of pre-norm grows with depth."""
    for layer in module.layers:
        x = layer(x, *others)
    return x


@stack_fault("final-norm-too-many", "final-norm", seam="{side}", origin="B072")
def final_norm_too_many(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """An undeclared norm without parameters ends the stack.

    The last layer's norm loses its effect.
    """
    return functional.layer_norm(correct(module, x, *others), x.shape[-1:])


@stack_fault("norms-frozen", "separate-norms", seam="norm_of", kind="gradient")
def norms_frozen(self: Hooks, correct: Build, module: Node, name: str) -> Node:
    """The parameters of the norms are detached.

    The output is right; the norms are never trained.
    """
    fixed = Node(self, "layer_norm")
    for key, value in correct(module, name).named_parameters():
        fixed.register_buffer(key, value.detach())
    return fixed


@stack_fault("batch-statistics", "batch-independence", seam="{side}")
def batch_statistics(self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask) -> Tensor:
    """The output is centred over the batch, as in batch norm. Samples affect each other."""
    states = correct(module, x, *others)
    return states - 0.5 * states.mean(dim=0, keepdim=True)


@stack_fault("layers-detached", "every-parameter-reached", seam="{side}", kind="gradient")
def layers_detached(self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask) -> Tensor:
    """States are detached between layers. The output is right; only the last layer trains."""
    return self.run_stack(module, x, lambda layer, h: layer(h.detach(), *others))


@stack_fault("skip-detached", "gradient", seam="residual", kind="gradient", in_layer=True)
def skip_detached(
    self: Hooks, correct: Call, module: Node, norm: Node, x: Tensor, function: Function
) -> Tensor:
    """The path around each sublayer is detached.

    The output is right; gradients vanish with depth.
    """
    branch = self.drop_branch(module, function(self.norm_before(norm, x)))
    return self.norm_after(norm, x.detach() + branch)


@stack_fault(
    "upper-layers-always-train",
    "eval-reaches-every-layer",
    seam="{side}",
    origin="B088",
    kind="mode",
)
def upper_layers_always_train(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """Evaluation mode reaches the first layer alone. Later layers stay random."""
    for layer in list(module.layers)[1:]:
        layer.train()
    return correct(module, x, *others)


@stack_fault(
    "dropout-without-mode",
    "eval-reaches-every-layer",
    seam="drop_branch",
    origin="B100",
    kind="mode",
    in_layer=True,
)
def dropout_without_mode(self: Hooks, correct: Call, module: Node, branch: Tensor) -> Tensor:
    """Dropout after the sublayers ignores the mode. Evaluation is random."""
    rate = self.dropout_rate()
    return self.drop(branch, rate) if rate > 0 else correct(module, branch)


@stack_fault("half-between-layers", "float32", seam="{side}")
def half_between_layers(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """States pass between layers in float16. Three digits are right, not seven."""
    return self.run_stack(module, x, lambda layer, h: layer(h.half().to(h), *others))


@stack_fault("half-becomes-single", "half-precision", seam="{side}_layer")
def half_becomes_single(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """Half precision goes in and float32 comes out. The next layer fails, or uses more memory."""
    states = correct(module, x, *others)
    return states.float() if x.dtype in (torch.float16, torch.bfloat16) else states


@stack_fault("layers-shared-beyond-six", "formula", seam="{side}")
def layers_shared_beyond_six(
    self: Hooks, correct: Call, module: Node, x: Tensor, *others: Mask
) -> Tensor:
    """Layers from the seventh on are the sixth again. Deep models have fewer parameters."""
    for number in range(len(module.layers)):
        x = module.layers[min(number, 5)](x, *others)
    return self.finish_stack(module, x)


@stack_fault(
    "dropout-rate-doubled", "dropout-on-sublayers", seam="drop_branch", kind="mode", in_layer=True
)
def dropout_rate_doubled(self: Hooks, correct: Call, module: Node, branch: Tensor) -> Tensor:
    """Dropout after the sublayers has twice its rate. The model learns less."""
    rate = min(2 * self.dropout_rate(), 0.9999)
    return self.drop(branch, rate) if self.is_training(module) and rate > 0 else branch


@stack_fault(
    "attention-dropout-ignored",
    "dropout-on-sublayers",
    seam="self_attend",
    kind="mode",
    in_layer=True,
)
def attention_dropout_ignored(
    self: Hooks, correct: Call, module: Node, x: Tensor, mask: Mask
) -> Tensor:
    """Attention is not told the rate. Its weights are dropped alone, and never in a layer."""
    attention = module.self_attention
    training = attention.training
    attention.eval()
    attended = correct(module, x, mask)
    attention.train(training)
    return attended
