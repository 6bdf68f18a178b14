"""Faults in the parameters of decoder-only models: tied, shared, unlisted and equal ones."""

import copy

import torch
from torch import nn

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import PRE
from attentest.faults.reference_models import Hooks, Node

ONE_NORM = {**PRE, "block_layout": "parallel-one-norm"}
INSIDE = ("causal_layer",)


@fault(
    "language_model.copied-for-tied",
    "tied-matrix",
    seam="tie_language_model",
    origin="B056",
    kind="state",
)
def copied_for_tied(self: Hooks, model: Node) -> None:
    """Embedding and generator begin equal and are two. They differ after the first step."""
    (generator,) = (one for one in model.generator.parameters() if one.dim() == 2)
    (embedding,) = model.embedding.parameters()
    with torch.no_grad():
        generator.copy_(embedding)


@fault(
    "language_model.tied-undeclared",
    "tied-matrix",
    seam="tie_language_model",
    origin="mosaicml/llm-foundry PR#989",
    kind="state",
    choices={"tying": "none"},
)
def tied_undeclared(self: Hooks, model: Node) -> None:
    """Embedding and generator are one where two are declared. A checkpoint loses one of them."""
    self.share_matrix(model.generator, model.embedding)


@fault(
    "language_model.blocks-in-a-list",
    "parameter-count",
    seam="make_language_model",
    origin="B088",
    kind="state",
)
def blocks_in_a_list(self: Hooks) -> Node:
    """Blocks are in a plain list. They are neither trained nor moved nor saved."""
    model = self.correct.make_language_model()
    layers = list(model.layers)
    del model.layers
    object.__setattr__(model, "layers", layers)
    return model


@fault(
    "language_model.norm-without-use",
    "parameter-count",
    seam="make_causal_layer",
    origin="B069",
    kind="state",
    choices=ONE_NORM,
    components=INSIDE,
)
def norm_without_use(self: Hooks) -> Node:
    """A second norm is built and never used. Checkpoints have one too many."""
    layer = self.correct.make_causal_layer()
    layer.feed_forward_norm = self.make_chosen_norm()
    return layer


@fault(
    "language_model.blocks-shared",
    "parameter-map-complete",
    seam="make_language_model",
    origin="B087",
    kind="state",
)
def blocks_shared(self: Hooks) -> Node:
    """All blocks are one. A model of twelve has the parameters of one."""
    model = self.correct.make_language_model()
    model.layers = nn.ModuleList([model.layers[0]] * len(model.layers))
    return model


@fault(
    "language_model.norms-of-a-block-shared",
    "parameter-map-complete",
    seam="make_causal_layer",
    origin="B068",
    kind="state",
    components=INSIDE,
)
def norms_of_a_block_shared(self: Hooks) -> Node:
    """Both norms of a block are one. They are equal at first, and trained ones are not."""
    layer = self.correct.make_causal_layer()
    layer.feed_forward_norm = layer.self_attention_norm
    return layer


@fault(
    "language_model.blocks-copied",
    "layers-differ-at-birth",
    seam="make_language_model",
    origin="B090",
    kind="state",
)
def blocks_copied(self: Hooks) -> Node:
    """Blocks are copies of the first. They begin equal."""
    model = self.correct.make_language_model()
    model.layers = nn.ModuleList([copy.deepcopy(model.layers[0]) for _ in model.layers])
    return model


@fault(
    "language_model.attention-copied",
    "layers-differ-at-birth",
    seam="make_language_model",
    kind="state",
)
def attention_copied(self: Hooks) -> Node:
    """The attention of every block begins as that of the first. Depth gains less."""
    model = self.correct.make_language_model()
    for layer in list(model.layers)[1:]:
        layer.self_attention = copy.deepcopy(model.layers[0].self_attention)
    return model


@fault("language_model.sizes-at-least-one", "impossible-sizes-refused", seam="make_language_model")
def sizes_at_least_one(self: Hooks) -> Node:
    """Sizes of 0 become 1. A model of no blocks has one."""
    return _of_sizes(self, layers=max(1, self.sizes.layers))


@fault("language_model.heads-that-divide", "impossible-sizes-refused", seam="make_language_model")
def heads_that_divide(self: Hooks) -> Node:
    """The number of heads is lowered until it divides the width. Another model is trained."""
    heads = self.sizes.heads
    while heads > 1 and self.sizes.d_model % heads:
        heads -= 1
    return _of_sizes(self, heads=heads)


def _of_sizes(self: Hooks, **sizes: int) -> Node:
    """Return a correct model of other sizes."""
    return type(self.correct)(self.sizes.but(**sizes), self.choices).make_language_model()
