"""Faults in where the norms stand, and which there are."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams

Function = Callable[[Tensor], Tensor]


@fault(
    "encoder.pre-for-post",
    clause="encoder.norm-placement",
    origin="B070",
    wrong="The norm comes before the sublayer where it is declared to come after the sum.",
    effect="It trains; no weights carry over from or to what it says it is.",
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    return x + self.drop_branch(module, function(norm(x)))


@fault(
    "encoder.post-for-pre",
    clause="encoder.norm-placement",
    origin="B070",
    wrong="The norm comes after the sum where it is declared to come before the sublayer.",
    effect="The path around the sublayers is no identity; deep stacks need a warm-up.",
    choices={"norm_placement": "pre"},
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    return norm(x + self.drop_branch(module, function(x)))


@fault(
    "encoder.skip-from-the-norm",
    clause="encoder.norm-placement",
    origin="B073",
    wrong="The path around a sublayer starts behind the norm: h = norm(x), then h + f(h).",
    effect="Nothing of the input passes a layer as it is.",
    choices={"norm_placement": "pre"},
    components=("encoder_layer",),
)
def residual(self: Seams, module: Node, norm: nn.Module, x: Tensor, function: Function) -> Tensor:
    if module.step != "encoder_layer":
        return self.sound.residual(module, norm, x, function)
    inner: Tensor = norm(x)
    return inner + self.drop_branch(module, function(inner))


@fault(
    "encoder.one-norm-for-both",
    clause="encoder.norm-sharing",
    origin="B068",
    wrong="One norm is built and given to both sublayers.",
    effect="Equal at birth, too few parameters, and no room for two scales later.",
)
def make_encoder_layer(self: Seams, shared: Node | None = None) -> Node:
    return self.sound.make_encoder_layer(shared or self.make_norm())


@fault(
    "encoder.norms-not-shared",
    clause="encoder.norm-sharing",
    wrong="Each sublayer has a norm of its own where one is declared for all.",
    effect="Equal until the first step of training, then it is another model.",
    choices={"norm_sharing": "shared"},
)
def make_encoder_layer(self: Seams, shared: Node | None = None) -> Node:
    layer = self.sound.make_encoder_layer(shared)
    layer.feed_forward_norm = self.make_norm()
    return layer


@fault(
    "encoder.first-norm-twice",
    clause="encoder.separate-norms",
    origin="B069",
    wrong="The first norm is called after both sublayers, the second never.",
    effect="Equal at birth; the second norm is saved, counted and never trained.",
    components=("encoder_layer",),
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    first = module.step == "encoder_layer"
    return self.sound.norm_of(module, "self_attention" if first else name)


@fault(
    "encoder.norms-exchanged",
    clause="encoder.separate-norms",
    wrong="Each of the two norms stands at the other's place.",
    effect="Invisible until a checkpoint of another library is loaded.",
    components=("encoder_layer",),
)
def norm_of(self: Seams, module: Node, name: str) -> nn.Module:
    if module.step != "encoder_layer":
        return self.sound.norm_of(module, name)
    other = "feed_forward" if name == "self_attention" else "self_attention"
    return self.sound.norm_of(module, other)


@fault(
    "encoder.final-norm-after-every-layer",
    clause="encoder.final-norm",
    wrong="The final norm is applied after every layer.",
    effect="Pre-norm layers no longer stand on a path that nothing touches.",
    choices={"norm_placement": "pre", "final_norm": "present"},
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    for layer in module.layers:
        x = self.finish_stack(module, layer(x, mask))
    return x


@fault(
    "encoder.norm-on-the-way-in",
    clause="encoder.stack-of-one-is-a-layer",
    wrong="The input is normalised before the first layer.",
    effect="The scale of the embeddings is lost.",
)
def encoder(self: Seams, module: Node, x: Tensor, mask: Mask = None) -> Tensor:
    return self.sound.encoder(module, functional.layer_norm(x, x.shape[-1:]), mask)
