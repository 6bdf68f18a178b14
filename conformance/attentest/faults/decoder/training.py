"""Faults in gradients and modes."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

from torch import Tensor, nn

from attentest.faults.decoder.shared import all_but, steps_of
from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]
Inputs = tuple[Tensor, Tensor, Tensor]


@fault(
    "decoder.queries-detached",
    clause="decoder.every-parameter-reached",
    wrong="Attention to the memory runs without gradients, its output detached.",
    effect="The output is right; how the source is read stays as it was born.",
    kind="gradient",
    components=("decoder_layer",),
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    return self.sound.cross_attend(module, x, memory, mask).detach()


@fault(
    "decoder.memory-detached",
    clause="decoder.gradient",
    wrong="The memory is detached.",
    effect="The output is right; the encoder is never trained.",
    kind="gradient",
)
def cross_inputs(self: Seams, x: Tensor, memory: Tensor) -> Inputs:
    return x, memory.detach(), memory.detach()


@fault(
    "decoder.gradient-to-padding",
    clause="decoder.gradient-to-masked-memory",
    wrong="The mean of all rows of the memory is added and its detached copy taken away.",
    effect="The output is right; the encoder learns from what stands at its padding.",
    kind="gradient",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    mean = memory.mean(dim=1, keepdim=True)
    return self.sound.cross_attend(module, x, memory, mask) + (mean - mean.detach())


@fault(
    "decoder.memory-masked-late",
    clause="decoder.gradient-to-masked-memory",
    wrong="What was read under the mask is put in place of what was read without, by its values.",
    effect="The output is right; the gradient is that of a decoder without a source mask.",
    kind="gradient",
)
def cross_attend(self: Seams, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    masked = self.sound.cross_attend(module, x, memory, mask)
    free = self.sound.cross_attend(module, x, memory, None)
    return free - free.detach() + masked.detach()


def _undropped(
    self: Seams, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without dropout on what `name` adds."""
    norm = self.norm_of(module, name)

    def whole(inner: Tensor) -> Tensor:
        return self.norm_after(norm, inner + steps[name](self.norm_before(norm, inner)))

    return all_but(self, module, x, steps, name, whole)


@fault(
    "decoder.no-dropout-after-the-memory",
    clause="decoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of the attention to the memory.",
    effect="A third of the model is not regularised.",
    kind="mode",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = steps_of(self, module, memory, source_mask, target_mask)
    return _undropped(self, module, x, steps, "cross_attention")


@fault(
    "decoder.no-dropout-after-self-attention",
    clause="decoder.dropout-on-sublayers",
    origin="B103",
    wrong="Nothing is dropped of the output of self-attention.",
    effect="A third of the model is not regularised.",
    kind="mode",
)
def decoder_layer(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    steps = steps_of(self, module, memory, source_mask, target_mask)
    return _undropped(self, module, x, steps, "self_attention")


@fault(
    "decoder.memory-trained-by-first-layer-alone",
    clause="decoder.every-parameter-reached",
    wrong="Only the first layer's attention sends a gradient to the memory.",
    effect="The encoder is trained, by a fraction of what should train it.",
    kind="gradient",
    components=("decoder",),
)
def decoder(
    self: Seams,
    module: Node,
    x: Tensor,
    memory: Tensor,
    source_mask: Mask = None,
    target_mask: Mask = None,
) -> Tensor:
    def step(layer: nn.Module, h: Tensor) -> Tensor:
        given = memory if layer is module.layers[0] else memory.detach()
        return layer(h, given, source_mask, target_mask)  # type: ignore[no-any-return]

    return self.run_stack(module, x, step)
