"""Faults in the norms of queries and keys."""

from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Node

EACH = {"query_key_norm": "per-head"}
WHOLE = {"query_key_norm": "whole-projection"}
LENGTH = {"query_key_norm": "unit-length"}
EARLY = {**EACH, "attention_rotary": "query-and-key"}
LATE = {**EARLY, "query_key_norm_place": "after-rotation"}
Heads = tuple[Tensor, Tensor]


def _normed_over(axis: int, self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Return heads (B, H, L, E) whose mean square is that over `axis` as well."""
    own = x.pow(2).mean(dim=-1, keepdim=True)
    each: Tensor = self.correct.norm_of_heads(module, name, x)
    return each * (own / own.mean(dim=axis, keepdim=True)).sqrt()


@fault(
    "multi_head_attention.norm-across-heads",
    "query-key-norm",
    seam="norm_of_heads",
    origin="M100",
    choices=EACH,
)
def norm_across_heads(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The mean square is that of all heads, where each has its own. Accuracy is lost silently."""
    return _normed_over(1, self, module, name, x)


@fault(
    "multi_head_attention.norm-within-heads",
    "query-key-norm",
    seam="norm_of_projection",
    origin="M100",
    choices=WHOLE,
)
def norm_within_heads(self: Hooks, norm: Node, x: Tensor) -> Tensor:
    """The mean square is that of each head, where it is that of all. Heads lose their sizes."""
    own = x.pow(2).mean(dim=-1, keepdim=True)
    whole = self.correct.norm_of_projection(norm, x)
    return whole * (own.mean(dim=1, keepdim=True) / own).sqrt()


@fault(
    "multi_head_attention.norm-of-queries-alone",
    "query-key-norm",
    seam="norm_heads",
    origin="M099",
    choices=EACH,
)
def norm_of_queries_alone(self: Hooks, module: Node, query: Tensor, key: Tensor) -> Heads:
    """Keys are not normalised. Scores grow with the size of the keys."""
    return self.correct.norm_heads(module, query, key)[0], key


@fault(
    "multi_head_attention.norm-shared-by-keys",
    "query-key-norm",
    seam="norm_of_heads",
    origin="huggingface/diffusers PR#13533",
    choices=EACH,
)
def norm_shared_by_keys(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Keys are normalised by the norm of the queries. That of the keys is never trained."""
    return self.correct.norm_of_heads(module, "query", x)


@fault(
    "multi_head_attention.norm-without-weight",
    "query-key-norm",
    seam="norm_of_heads",
    origin="lucidrains/x-transformers#352",
    choices=EACH,
)
def norm_without_weight(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Queries and keys are normalised without their weights. At first they are all equal."""
    divisor = self.rms_divisor(self.mean_square(x), x.shape[-1])
    return self.divide_row(x, divisor)


@fault(
    "multi_head_attention.norm-over-tokens",
    "query-key-norm",
    seam="norm_of_heads",
    origin="M101",
    choices=EACH,
)
def norm_over_tokens(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """The mean square is that of a head over all tokens. Later tokens change earlier ones."""
    return _normed_over(2, self, module, name, x)


@fault(
    "multi_head_attention.norm-undeclared", "query-key-norm", seam="norm_of_heads", origin="M099"
)
def norm_undeclared(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Queries and keys are divided by their length, which is not declared. Attention stays flat."""
    return self.unit_heads(x)


@fault(
    "multi_head_attention.norm-missing",
    "query-key-norm",
    seam="norm_heads",
    origin="Cerebras/modelzoo PR#85",
    choices=LENGTH,
)
def norm_missing(self: Hooks, module: Node, query: Tensor, key: Tensor) -> Heads:
    """Queries and keys are not divided by their length. Scores grow without a bound."""
    return query, key


@fault(
    "multi_head_attention.length-of-all-heads",
    "query-key-norm",
    seam="unit_heads",
    origin="M100",
    choices=LENGTH,
)
def length_of_all_heads(self: Hooks, x: Tensor) -> Tensor:
    """Heads are divided by the length of all of them together. Small heads hardly count."""
    return x / x.pow(2).sum(dim=(1, 3), keepdim=True).sqrt().clamp(min=1e-12)


@fault(
    "multi_head_attention.norm-after-rotation",
    "query-key-norm-place",
    seam="norms_after_turns",
    origin="LMCache/LMCache PR#1633",
    choices=EARLY,
)
def norm_after_rotation(self: Hooks) -> bool:
    """Queries and keys are turned before they are normalised. Trained weights show it alone."""
    return True


@fault(
    "multi_head_attention.norm-before-rotation",
    "query-key-norm-place",
    seam="norms_after_turns",
    origin="vllm-project/vllm-metal PR#664",
    choices=LATE,
)
def norm_before_rotation(self: Hooks) -> bool:
    """Queries and keys are normalised before they are turned. Trained weights show it alone."""
    return False


@fault(
    "multi_head_attention.head-norms-skipped",
    "query-key-norm",
    seam="norm_heads",
    origin="vllm-project/vllm-metal PR#659",
    choices=EACH,
)
def head_norms_skipped(self: Hooks, module: Node, query: Tensor, key: Tensor) -> Heads:
    """The norms are looked up by names that they do not have, and skipped. Texts are garbage."""
    return query, key
