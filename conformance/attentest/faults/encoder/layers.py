"""Faults in layers on top of each other."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault(
    "encoder.attention-for-all-layers",
    "layers-own-parameters",
    seam="make_encoder",
    origin="A",
    kind="state",
)
def attention_for_all_layers(self: Hooks) -> Node:
    """All layers share one attention, which is not copied. Attention is the same in all layers."""
    stack = self.correct.make_encoder()
    for layer in stack.layers:
        layer.self_attention = stack.layers[0].self_attention
    return stack


@fault("encoder.last-layer-twice", "stack-of-one-is-a-layer", seam="encoder")
def last_layer_twice(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The last layer is applied twice. The model is one layer deeper than declared."""
    for layer in [*module.layers, module.layers[-1]]:
        x = layer(x, mask)
    return self.finish_stack(module, x)
