"""Faults in the set of parameters and their initial values."""

import torch
from torch import nn

from attentest.faults.fault import fault
from attentest.faults.model.shared import matrix_of
from attentest.faults.reference_models import Hooks, Node


@fault(
    "model.encoder-layers-shared", "parameter-count", seam="make_model", origin="B087", kind="state"
)
def encoder_layers_shared(self: Hooks) -> Node:
    """The encoder is one layer N times. Depth adds no parameters."""
    model = self.correct.make_model()
    model.encoder.layers = nn.ModuleList([model.encoder.layers[0]] * self.sizes.layers)
    return model


@fault("model.final-norm-unasked", "parameter-count", seam="make_model", origin="B072")
def final_norm_unasked(self: Hooks) -> Node:
    """The decoder ends in an undeclared norm. There are parameters too many."""
    model = self.correct.make_model()
    if model.decoder.norm is None:
        model.decoder.norm = self.correct.make_chosen_norm()
    return model


@fault(
    "model.position-table-trained",
    "parameter-count",
    seam="make_model",
    origin="B045",
    kind="state",
)
def position_table_trained(self: Hooks) -> Node:
    """The fixed table of positions is a parameter. Training changes it."""
    model = self.correct.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.trained = nn.Parameter(table)
    return model


@fault(
    "model.one-attention-for-self-and-memory",
    "parameter-map-complete",
    seam="make_model",
    origin="B032",
    kind="state",
)
def one_attention_for_self_and_memory(self: Hooks) -> Node:
    """A decoder layer attends to itself and to the memory with the same weights.

    Two canonical names lead to one place, and what is loaded last wins.
    """
    model = self.correct.make_model()
    for layer in model.decoder.layers:
        layer.cross_attention = layer.self_attention
    return model


@fault(
    "model.feed-forward-of-both-stacks", "parameter-map-complete", seam="make_model", kind="state"
)
def feed_forward_of_both_stacks(self: Hooks) -> Node:
    """Encoder and decoder share one feed-forward network. Loading one changes both."""
    model = self.correct.make_model()
    model.decoder.layers[0].feed_forward = model.encoder.layers[0].feed_forward
    return model


def _filled(model: Node, value: float) -> Node:
    with torch.no_grad():
        list(model.generator.parameters())[-1].fill_(value)
    return model


@fault("model.bias-never-filled", "finite-at-birth", seam="make_model", origin="B099", kind="state")
def bias_never_filled(self: Hooks) -> Node:
    """The generator's bias is uninitialised memory. It may be NaN."""
    return _filled(self.correct.make_model(), float("nan"))


@fault(
    "model.bias-of-unfilled-memory",
    "finite-at-birth",
    seam="make_model",
    origin="B099",
    kind="state",
)
def bias_of_unfilled_memory(self: Hooks) -> Node:
    """The generator's bias is uninitialised memory. It may hold numbers such as 1e30."""
    return _filled(self.correct.make_model(), 1e30)


@fault(
    "model.tables-born-too-large", "finite-at-birth", seam="make_model", origin="B058", kind="state"
)
def tables_born_too_large(self: Hooks) -> Node:
    """Tables are initialised with far too large a deviation. The first loss is enormous."""
    model = self.correct.make_model()
    with torch.no_grad():
        for part in (model.source_embedding, model.target_embedding):
            matrix_of(part).normal_(std=float(self.sizes.d_model**2))
    return model


def _same_layers(stack: Node) -> None:
    first, *others = stack.layers
    for layer in others:
        layer.load_state_dict(first.state_dict())


@fault(
    "model.encoder-layers-born-alike",
    "layers-differ-at-birth",
    seam="make_model",
    origin="B090",
    kind="state",
)
def encoder_layers_born_alike(self: Hooks) -> Node:
    """The encoder's layers are initialised as copies. They get similar gradients."""
    model = self.correct.make_model()
    _same_layers(model.encoder)
    return model


@fault(
    "model.decoder-layers-born-alike",
    "layers-differ-at-birth",
    seam="make_model",
    origin="B090",
    kind="state",
)
def decoder_layers_born_alike(self: Hooks) -> Node:
    """The decoder's layers are initialised as copies. They get similar gradients."""
    model = self.correct.make_model()
    _same_layers(model.decoder)
    return model
