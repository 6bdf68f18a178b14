"""Faults in the number and the placement of the norms."""

from torch import Tensor
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.faults.reference_models import Function, Hooks, Mask, Node


@fault("encoder.pre-for-post", "norm-placement", seam="residual", origin="B070", in_layer=True)
def pre_for_post(self: Hooks, module: Node, norm: Node, x: Tensor, function: Function) -> Tensor:
    """The norm comes before the sublayer where it is declared to come after the sum.

    It trains; no weights carry over from or to what it says it is.
    """
    if module.step != "encoder_layer":
        return self.correct.residual(module, norm, x, function)
    return x + self.drop_branch(module, function(norm(x)))


@fault(
    "encoder.post-for-pre",
    "norm-placement",
    seam="residual",
    origin="B070",
    choices={"norm_placement": "pre"},
    in_layer=True,
)
def post_for_pre(self: Hooks, module: Node, norm: Node, x: Tensor, function: Function) -> Tensor:
    """The norm comes after the sum where it is declared to come before the sublayer.

    The path around the sublayers is no identity; deep stacks need a warm-up.
    """
    if module.step != "encoder_layer":
        return self.correct.residual(module, norm, x, function)
    return norm(x + self.drop_branch(module, function(x)))


@fault(
    "encoder.skip-from-the-norm",
    "norm-placement",
    seam="residual",
    origin="B073",
    choices={"norm_placement": "pre"},
    in_layer=True,
)
def skip_from_the_norm(
    self: Hooks, module: Node, norm: Node, x: Tensor, function: Function
) -> Tensor:
    """The path around a sublayer starts behind the norm: h = norm(x), then h + f(h).

    Nothing of the input passes a layer as it is.
    """
    if module.step != "encoder_layer":
        return self.correct.residual(module, norm, x, function)
    inner: Tensor = norm(x)
    return inner + self.drop_branch(module, function(inner))


@fault("encoder.one-norm-for-both", "norm-sharing", seam="make_encoder_layer", origin="B068")
def one_norm_for_both(self: Hooks, shared: Node | None = None) -> Node:
    """Both sublayers are given one norm. Initial outputs are equal, but parameters are missing."""
    return self.correct.make_encoder_layer(shared or self.make_chosen_norm())


@fault(
    "encoder.norms-not-shared",
    "norm-sharing",
    seam="make_encoder_layer",
    choices={"norm_sharing": "shared"},
)
def norms_not_shared(self: Hooks, shared: Node | None = None) -> Node:
    """Each sublayer has a norm of its own where one is declared for all.

    Equal until the first step of training, then it is another model.
    """
    layer = self.correct.make_encoder_layer(shared)
    layer.feed_forward_norm = self.make_chosen_norm()
    return layer


@fault("encoder.first-norm-twice", "separate-norms", seam="norm_of", origin="B069", in_layer=True)
def first_norm_twice(self: Hooks, module: Node, name: str) -> Node:
    """The first norm is called after both sublayers, the second never.

    Equal when initialised; the second norm is saved, counted and never trained.
    """
    first = module.step == "encoder_layer"
    return self.correct.norm_of(module, "self_attention" if first else name)


@fault("encoder.norms-exchanged", "separate-norms", seam="norm_of", in_layer=True)
def norms_exchanged(self: Hooks, module: Node, name: str) -> Node:
    """The two norms are exchanged. Only a checkpoint of another library shows it."""
    if module.step != "encoder_layer":
        return self.correct.norm_of(module, name)
    other = "feed_forward" if name == "self_attention" else "self_attention"
    return self.correct.norm_of(module, other)


@fault(
    "encoder.final-norm-after-every-layer",
    "final-norm",
    seam="encoder",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def final_norm_after_every_layer(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The final norm is applied after every layer. The identity path is broken."""
    for layer in module.layers:
        x = self.finish_stack(module, layer(x, mask))
    return x


@fault("encoder.norm-on-the-way-in", "stack-of-one-is-a-layer", seam="encoder")
def norm_on_the_way_in(self: Hooks, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    """The input is normalised before the first layer. The scale of the embeddings is lost."""
    return self.correct.encoder(module, functional.layer_norm(x, x.shape[-1:]), mask)
