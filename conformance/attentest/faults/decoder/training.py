"""Faults in gradients and modes."""

from torch import Tensor

from attentest.faults.decoder.shared import all_but, steps_of
from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Inputs, Mask, Node


@fault(
    "decoder.queries-detached",
    "every-parameter-reached",
    seam="cross_attend",
    kind="gradient",
    in_layer=True,
)
def queries_detached(self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Attention to the memory is detached. The output is right; it is never trained."""
    return self.correct.cross_attend(module, x, memory, mask).detach()


@fault("decoder.memory-detached", "gradient", seam="cross_inputs", kind="gradient")
def memory_detached(self: Hooks, x: Tensor, memory: Tensor) -> Inputs:
    """The memory is detached. The output is right; the encoder is never trained."""
    return x, memory.detach(), memory.detach()


@fault(
    "decoder.gradient-to-padding", "gradient-to-masked-memory", seam="cross_attend", kind="gradient"
)
def gradient_to_padding(self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """The mean of the memory is added and its detached copy subtracted.

    The encoder learns from padding.
    """
    mean = memory.mean(dim=1, keepdim=True)
    return self.correct.cross_attend(module, x, memory, mask) + (mean - mean.detach())


@fault(
    "decoder.memory-masked-late", "gradient-to-masked-memory", seam="cross_attend", kind="gradient"
)
def memory_masked_late(self: Hooks, module: Node, x: Tensor, memory: Tensor, mask: Mask) -> Tensor:
    """Masked results replace unmasked ones by value alone.

    The output is right; gradients ignore the source mask.
    """
    masked = self.correct.cross_attend(module, x, memory, mask)
    free = self.correct.cross_attend(module, x, memory, None)
    return free - free.detach() + masked.detach()


def _undropped(
    self: Hooks, module: Node, x: Tensor, steps: dict[str, Function], name: str
) -> Tensor:
    """Apply the sublayers in turn, without dropout on what `name` adds."""
    norm = self.norm_of(module, name)

    def whole(inner: Tensor) -> Tensor:
        return self.norm_after(norm, inner + steps[name](self.norm_before(norm, inner)))

    return all_but(self, module, x, steps, name, whole)


@fault(
    "decoder.no-dropout-after-the-memory",
    "dropout-on-sublayers",
    seam="decoder_layer",
    origin="B103",
    kind="mode",
)
def no_dropout_after_the_memory(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The cross-attention output is not dropped. A third of the model is not regularised."""
    steps = steps_of(self, module, memory, *masks)
    return _undropped(self, module, x, steps, "cross_attention")


@fault(
    "decoder.no-dropout-after-self-attention",
    "dropout-on-sublayers",
    seam="decoder_layer",
    origin="B103",
    kind="mode",
)
def no_dropout_after_self_attention(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """The self-attention output is not dropped. A third of the model is not regularised."""
    steps = steps_of(self, module, memory, *masks)
    return _undropped(self, module, x, steps, "self_attention")


@fault(
    "decoder.memory-trained-by-first-layer-alone",
    "every-parameter-reached",
    seam="decoder",
    kind="gradient",
    components=("decoder",),
)
def memory_trained_by_first_layer_alone(
    self: Hooks, module: Node, x: Tensor, memory: Tensor, *masks: Mask
) -> Tensor:
    """Only the first layer's attention sends a gradient to the memory.

    The encoder is trained, by a fraction of what should train it.
    """

    def step(layer: Node, h: Tensor) -> Tensor:
        given = memory if layer is module.layers[0] else memory.detach()
        return layer(h, given, *masks)

    return self.run_stack(module, x, step)
