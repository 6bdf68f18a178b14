"""Faults in which parameters there are, and what they are at birth."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import nn

from attentest.faults.fault import fault
from attentest.faults.model.shared import matrix_of
from attentest.specimens import Node, Seams


@fault(
    "model.encoder-layers-shared",
    clause="model.parameter-count",
    origin="B087",
    wrong="The encoder is one layer, applied several times: `[layer] * n`.",
    effect="The number of parameters does not grow with the depth.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.encoder.layers = nn.ModuleList([model.encoder.layers[0]] * self.sizes.layers)
    return model


@fault(
    "model.final-norm-unasked",
    clause="model.parameter-count",
    origin="B072",
    wrong="The decoder ends in a norm that is not declared.",
    effect="One norm too many, with parameters of its own.",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    if model.decoder.norm is None:
        model.decoder.norm = self.sound.make_norm()
    return model


@fault(
    "model.position-table-trained",
    clause="model.parameter-count",
    origin="B045",
    wrong="The fixed table of positions is a parameter.",
    effect="It counts as a weight, and drifts.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    table = self.position_table(self.sizes.max_length, self.sizes.d_model)
    model.source_positions.trained = nn.Parameter(table)
    return model


@fault(
    "model.one-attention-for-self-and-memory",
    clause="model.parameter-map-complete",
    origin="B032",
    wrong="A decoder layer attends to itself and to the memory with the same weights.",
    effect="Two canonical names lead to one place, and what is loaded last wins.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    for layer in model.decoder.layers:
        layer.cross_attention = layer.self_attention
    return model


@fault(
    "model.feed-forward-of-both-stacks",
    clause="model.parameter-map-complete",
    wrong="Encoder and decoder are built around one feed-forward network.",
    effect="Loading the decoder changes the encoder.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    model.decoder.layers[0].feed_forward = model.encoder.layers[0].feed_forward
    return model


def _filled(model: Node, value: float) -> Node:
    with torch.no_grad():
        list(model.generator.parameters())[-1].fill_(value)
    return model


@fault(
    "model.bias-never-filled",
    clause="model.finite-at-birth",
    origin="B099",
    wrong="The generator's bias is whatever lay in memory.",
    effect="NaN at birth, on some days.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _filled(self.sound.make_model(), float("nan"))


@fault(
    "model.bias-of-unfilled-memory",
    clause="model.finite-at-birth",
    origin="B099",
    wrong="The generator's bias is whatever lay in memory.",
    effect="A number of 1e30 at birth, on some days.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    return _filled(self.sound.make_model(), 1e30)


@fault(
    "model.tables-born-too-large",
    clause="model.finite-at-birth",
    origin="B058",
    wrong="Tables are drawn with the variance where the deviation belongs.",
    effect="The first loss is many times the logarithm of the vocabulary.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
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
    clause="model.layers-differ-at-birth",
    origin="B090",
    wrong="The encoder's layers are copies of one that is initialised.",
    effect="They get like gradients, and depth is worth less.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    _same_layers(model.encoder)
    return model


@fault(
    "model.decoder-layers-born-alike",
    clause="model.layers-differ-at-birth",
    origin="B090",
    wrong="The decoder's layers are copies of one that is initialised.",
    effect="They get like gradients, and depth is worth less.",
    kind="state",
)
def make_model(self: Seams) -> Node:
    model = self.sound.make_model()
    _same_layers(model.decoder)
    return model
