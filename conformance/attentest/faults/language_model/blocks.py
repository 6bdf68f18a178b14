"""Faults in the blocks of decoder-only models, and in their order."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.language_model.settings import PRE, as_if
from attentest.faults.reference_models import Hooks, Mask, Node

TWO_NORMS = {**PRE, "block_layout": "parallel-two-norms"}
ONE_NORM = {**PRE, "block_layout": "parallel-one-norm"}


@fault(
    "language_model.final-norm-missing",
    "formula",
    seam="finish_language_model",
    origin="B072",
    choices=PRE,
)
def final_norm_missing(self: Hooks, module: Node, x: Tensor) -> Tensor:
    """The final norm is built and not applied. Logits grow with the number of blocks."""
    return module.generator(x)


@fault(
    "language_model.norm-before-positions",
    "formula",
    seam="embed_tokens",
    choices={"embedding_norm": "present"},
)
def norm_before_positions(self: Hooks, module: Node, tokens: Tensor, places: Tensor) -> Tensor:
    """Embeddings are normalised before positions are added. The sum is not normalised."""
    normed = module.embedding_norm(module.embedding(tokens))
    return self.add_places(module.positions, normed, places)


@fault(
    "language_model.residual-of-the-norm",
    "layer-formula",
    seam="close_sum",
    origin="B073",
    choices=PRE,
    components=("causal_layer",),
)
def residual_of_the_norm(self: Hooks, module: Node, name: str, x: Tensor, branch: Tensor) -> Tensor:
    """The residual path begins after the norm. The scale of the state is lost in every block."""
    return self.correct.close_sum(module, name, self.open_branch(module, name, x), branch)


@fault(
    "language_model.residual-left-out",
    "layer-formula",
    seam="close_sum",
    origin="B075",
    components=("causal_layer",),
)
def residual_left_out(self: Hooks, module: Node, name: str, x: Tensor, branch: Tensor) -> Tensor:
    """The network has no residual path beside it. Deep models stop learning."""
    kept = x * 0 if name == "feed_forward" else x
    return self.correct.close_sum(module, name, kept, branch)


@fault(
    "language_model.layer-norm-for-rms",
    "norm-kind",
    seam="make_chosen_norm",
    origin="ggml-org/llama.cpp#173",
    choices={"norm_kind": "rms", "norm_bias": "none"},
    components=("language_model", "causal_layer", "residual"),
)
def layer_norm_for_rms(self: Hooks) -> Node:
    """Layer norms without a bias are built for RMS norms. Checkpoints load, means are lost."""
    return self.make_norm()


@fault(
    "language_model.rms-for-layer-norm",
    "norm-kind",
    seam="make_chosen_norm",
    choices={"norm_bias": "none"},
    components=("language_model", "causal_layer", "residual"),
)
def rms_for_layer_norm(self: Hooks) -> Node:
    """RMS norms are built for layer norms without a bias. Checkpoints load, means stay."""
    return self.make_rms_norm()


@fault(
    "language_model.norms-after-the-sum",
    "block-norms",
    seam="causal_layer",
    origin="B070",
    choices=PRE,
    components=("causal_layer",),
)
def norms_after_the_sum(self: Hooks, module: Node, *inputs: Any) -> Tensor:
    """Norms are applied to the sums, where they are declared before. Weights do not carry over."""
    return as_if(self, block_norms="post").causal_layer(module, *inputs)


@fault(
    "language_model.norms-of-branches-first",
    "block-norms",
    seam="causal_layer",
    origin="EleutherAI/gpt-neox PR#1408",
    choices={"block_norms": "post-branch"},
    components=("causal_layer",),
)
def norms_of_branches_first(self: Hooks, module: Node, *inputs: Any) -> Tensor:
    """Norms of the branches are applied to their inputs. Every name and shape fits."""
    return as_if(self, block_norms="pre").causal_layer(module, *inputs)


@fault(
    "language_model.second-norms-unused",
    "block-norms",
    seam="causal_layer",
    origin="B069",
    choices={"block_norms": "sandwich"},
    components=("causal_layer",),
)
def second_norms_unused(self: Hooks, module: Node, *inputs: Any) -> Tensor:
    """The norms after the sublayers are loaded and not applied. Branches have any scale."""
    return as_if(self, block_norms="pre").causal_layer(module, *inputs)


@fault(
    "language_model.parallel-for-sequential",
    "block-layout",
    seam="in_parallel",
    origin="M169",
    choices=PRE,
    components=("causal_layer",),
)
def parallel_for_sequential(self: Hooks) -> bool:
    """Blocks are parallel whatever is declared. A sequential checkpoint gives fluent nonsense."""
    return True


@fault(
    "language_model.sequential-for-parallel",
    "block-layout",
    seam="in_parallel",
    origin="M169",
    choices=TWO_NORMS,
    components=("causal_layer",),
)
def sequential_for_parallel(self: Hooks) -> bool:
    """The network is given what attention leaves, in a parallel block. All weights fit."""
    return False


@fault(
    "language_model.norms-crossed",
    "block-layout",
    seam="opening_norm",
    origin="M170",
    choices=TWO_NORMS,
    components=("causal_layer",),
)
def norms_crossed(self: Hooks, module: Node, name: str) -> Node:
    """The norms of the two branches are exchanged. Equal at first, and trained ones differ."""
    other = {"self_attention": "feed_forward", "feed_forward": "self_attention"}[name]
    return self.correct.opening_norm(module, other)


@fault(
    "language_model.one-norm-for-both",
    "block-layout",
    seam="opening_norm",
    origin="M170",
    choices=TWO_NORMS,
    components=("causal_layer",),
)
def one_norm_for_both(self: Hooks, module: Node, name: str) -> Node:
    """Both branches are given the norm of attention. The other norm is never used."""
    return self.correct.opening_norm(module, "self_attention")


@fault(
    "language_model.last-block-skipped",
    "every-layer-counts",
    seam="causal_layers",
    origin="LukasHedegaard/continual-inference PR#70",
)
def last_block_skipped(self: Hooks, module: Node) -> Iterable[Node]:
    """The last block is not applied where there are several. A deeper model is no better."""
    layers = list(self.correct.causal_layers(module))
    return layers[: max(1, len(layers) - 1)]


@fault("language_model.first-block-repeated", "every-layer-counts", seam="causal_layers")
def first_block_repeated(self: Hooks, module: Node) -> Iterable[Node]:
    """The first block is applied in the place of each. All others are trained by nothing."""
    layers = list(self.correct.causal_layers(module))
    return [layers[0]] * len(layers)


@fault(
    "language_model.blocks-given-the-embedding",
    "every-layer-counts",
    seam="language_model",
    origin="B081",
)
def blocks_given_the_embedding(
    self: Hooks,
    module: Node,
    tokens: Tensor,
    mask: Tensor | None = None,
    positions: Tensor | None = None,
) -> Tensor:
    """Every block is given the embedded tokens. The output is that of the last block alone."""
    places = self.default_places(tokens, mask) if positions is None else positions
    x = self.embed_tokens(module, tokens, places)
    outputs = [layer(x, mask, places) for layer in self.causal_layers(module)]
    return self.finish_language_model(module, outputs[-1])


@fault(
    "language_model.residual-before-the-norm",
    "block-norms",
    seam="join_branches",
    origin="NVIDIA-NeMo/Speech PR#4350",
    choices={"block_norms": "post"},
    components=("causal_layer",),
)
def residual_before_the_norm(self: Hooks, module: Node, x: Tensor, attended: Tensor) -> Tensor:
    """The network is given the norm of the sum, and the residual path the sum. It trains."""
    total = x + attended
    branch = self.feed_forward_branch(module, module.self_attention_norm(total))
    return self.close_sum(module, "feed_forward", total, branch)


@fault(
    "language_model.branch-norm-after-the-next",
    "block-norms",
    seam="causal_layer",
    origin="google/flax#4567",
    choices={"block_norms": "sandwich"},
    components=("causal_layer",),
)
def branch_norm_after_the_next(
    self: Hooks, module: Node, x: Tensor, mask: Mask = None, positions: Tensor | None = None
) -> Tensor:
    """The norm after attention follows that before the network. Checkpoints load."""
    places = self.column_places(x[..., 0]) if positions is None else positions
    keep = self.limit_documents(self.visible_keys(x.shape[1], mask, x.device), places)
    total = x + as_if(self, block_norms="pre").attention_branch(module, x, keep, places)
    opened = module.self_attention_branch_norm(module.feed_forward_norm(total))
    return total + self.end_branch(module, "feed_forward", module.feed_forward(opened))


@fault(
    "language_model.network-opened-by-the-branch-norm",
    "block-norms",
    seam="opening_norm",
    origin="NVIDIA-NeMo/Megatron-Bridge PR#4201",
    choices={"block_norms": "sandwich"},
    components=("causal_layer",),
)
def network_opened_by_the_branch_norm(self: Hooks, module: Node, name: str) -> Node:
    """The norm after attention opens the network, too. That of its own is loaded and not used."""
    after: Node = module.self_attention_branch_norm
    return after if name == "feed_forward" else self.correct.opening_norm(module, name)


@fault(
    "language_model.residual-gradient-through-the-norm",
    "gradient",
    seam="close_sum",
    origin="Dao-AILab/quack PR#53",
    choices=PRE,
    kind="gradient",
    components=("causal_layer",),
)
def residual_gradient_through_the_norm(
    self: Hooks, module: Node, name: str, x: Tensor, branch: Tensor
) -> Tensor:
    """The gradient of the residual path is added before the norm's own. Values are right."""
    normed = self.open_branch(module, name, x)
    return self.correct.close_sum(module, name, x.detach() + normed - normed.detach(), branch)
