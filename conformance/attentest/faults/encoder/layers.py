"""Faults in layers on top of each other."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "encoder.attention-for-all-layers",
    clause="encoder.layers-own-parameters",
    origin="A",
    wrong="One attention is handed to the builder and not copied for every layer.",
    effect="Attention is the same in all layers.",
    kind="state",
)
def make_encoder(self: Seams) -> Node:
    stack = self.sound.make_encoder()
    for layer in stack.layers:
        layer.self_attention = stack.layers[0].self_attention
    return stack


@fault(
    "encoder.last-layer-twice",
    clause="encoder.stack-of-one-is-a-layer",
    wrong="The loop runs once more, with the last layer again.",
    effect="The model is one layer deeper than its parameters.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in [*module.layers, module.layers[-1]]:
        x = layer(x, mask)
    return self.finish_stack(module, x)
