"""Faults in heads of keys and values that several query heads share, and in built-in causality."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node

SHARED = {"key_heads": "fewer"}
CAUSAL = {"attention_causality": "built-in"}


@fault(
    "multi_head_attention.shared-heads-tiled",
    "shared-key-heads",
    seam="repeat_heads",
    origin="ekzhang/jax-js PR#180",
    choices=SHARED,
)
def shared_heads_tiled(self: Hooks, x: Tensor, times: int) -> Tensor:
    """Key heads are dealt out to the query heads in turn: repeat for repeat_interleave.

    The shapes fit and it trains; a checkpoint gives another model.
    """
    return x.repeat(1, times, 1, 1)


@fault(
    "multi_head_attention.positions-repeated",
    "shared-key-heads",
    seam="repeat_heads",
    origin="M103",
    choices=SHARED,
)
def positions_repeated(self: Hooks, x: Tensor, times: int) -> Tensor:
    """Positions are repeated in place of heads. Query heads read pieces of sequences as keys."""
    batch, groups, length, width = x.shape
    return x.repeat_interleave(times, dim=2).reshape(batch, groups * times, length, width)


@fault(
    "multi_head_attention.first-head-for-all",
    "shared-key-heads",
    seam="repeat_heads",
    origin="M104",
    choices=SHARED,
)
def first_head_for_all(self: Hooks, x: Tensor, times: int) -> Tensor:
    """All query heads use the first key head. The others are never trained."""
    return x[:, :1].expand(x.shape[0], x.shape[1] * times, *x.shape[2:])


@fault(
    "multi_head_attention.shared-heads-averaged",
    "shared-key-heads",
    seam="repeat_heads",
    choices=SHARED,
)
def shared_heads_averaged(self: Hooks, x: Tensor, times: int) -> Tensor:
    """All query heads use the mean of the key heads. Several heads do the work of one."""
    return x.mean(dim=1, keepdim=True).expand(x.shape[0], x.shape[1] * times, *x.shape[2:])


@fault(
    "multi_head_attention.shared-heads-backwards",
    "shared-key-heads",
    seam="repeat_heads",
    choices=SHARED,
)
def shared_heads_backwards(self: Hooks, x: Tensor, times: int) -> Tensor:
    """The groups are used from the last to the first. A checkpoint gives another model."""
    return self.correct.repeat_heads(x.flip(1), times)


@fault(
    "multi_head_attention.missing-heads-zero",
    "shared-key-heads",
    seam="repeat_heads",
    origin="M104",
    choices=SHARED,
)
def missing_heads_zero(self: Hooks, x: Tensor, times: int) -> Tensor:
    """Key heads are not repeated: those that are missing are zeros. Most heads give nothing."""
    batch, groups, length, width = x.shape
    zeros = x.new_zeros(batch, groups * (times - 1), length, width)
    return torch.cat([x, zeros], dim=1)


@fault(
    "multi_head_attention.queries-grouped-in-turn",
    "shared-key-heads",
    seam="attention",
    origin="M105",
    choices=SHARED,
    components=("multi_head_attention", "attention"),
)
def queries_grouped_in_turn(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """Query heads are grouped across and not along their order, before they meet the keys.

    The shapes fit and it trains; a checkpoint gives another model.
    """
    groups = self.key_heads()
    times = query.shape[1] // groups
    places = torch.arange(query.shape[1], device=query.device).view(times, groups).T.flatten()
    own = mask if mask is None or mask.shape[1] == 1 else mask[:, places]
    output, weights = self.correct.attention(module, query[:, places], key, value, own)
    return output[:, places.argsort()], weights[:, places.argsort()]


@fault(
    "multi_head_attention.scaled-by-shared-width",
    "formula",
    seam="scale",
    origin="M107",
    choices=SHARED,
    components=("multi_head_attention", "attention"),
)
def scaled_by_shared_width(self: Hooks, width: int, heads: int) -> float:
    """Scores are scaled by the width of all key heads together. Attention is too flat."""
    return float((width * self.key_heads()) ** -0.5)


@fault(
    "multi_head_attention.sharing-undeclared",
    "parameter-count",
    seam="key_heads",
    kind="state",
)
def sharing_undeclared(self: Hooks) -> int:
    """Keys and values have one head, which is undeclared. No checkpoint fits."""
    return 1


@fault(
    "multi_head_attention.values-of-the-neighbour-group",
    "shared-key-heads",
    seam="project",
    choices=SHARED,
)
def values_of_the_neighbour_group(self: Hooks, module: Node, name: str, x: Tensor) -> Tensor:
    """Each group reads its own keys and the values of the next group. It trains."""
    projected = self.correct.project(module, name, x)
    return projected.roll(-self.head_width(), dims=-1) if name == "value" else projected


@fault(
    "multi_head_attention.causality-missing",
    "causality",
    seam="own_causality",
    origin="iCog-Labs-Dev/PC-Transformers#97",
    choices=CAUSAL,
)
def causality_missing(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """Later keys are not hidden. The model reads the answer, and its loss falls to zero."""
    return mask


@fault(
    "multi_head_attention.causality-undeclared",
    "causality",
    seam="own_causality",
    origin="huggingface/sentence-transformers#3725",
)
def causality_undeclared(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """Later keys are hidden without a mask that says so. An encoder reads backwards alone."""
    if query.shape[1] != key.shape[1]:
        return mask
    earlier = self.earlier(query.shape[1], key.shape[1], query.device)
    return earlier if mask is None else mask & earlier


@fault(
    "multi_head_attention.mask-in-place-of-causality",
    "masked-keys-ignored",
    seam="own_causality",
    origin="huggingface/transformers PR#41966",
    choices=CAUSAL,
)
def mask_in_place_of_causality(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """A mask takes the place of the built-in causality. Padded batches read the future."""
    return self.correct.own_causality(mask, query, key) if mask is None else mask


@fault(
    "multi_head_attention.causality-in-place-of-mask",
    "masked-keys-ignored",
    seam="own_causality",
    origin="pacman100/LLM-Workshop#1",
    choices=CAUSAL,
)
def causality_in_place_of_mask(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """The built-in causality takes the place of the mask. Padding is attended to."""
    return self.correct.own_causality(None, query, key)


@fault(
    "multi_head_attention.own-key-hidden", "formula", seam="earlier", origin="B015", choices=CAUSAL
)
def own_key_hidden(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """A query does not see its own key. All but the first read what is one step older."""
    earlier = self.correct.earlier(queries, keys, device)
    own = torch.eye(queries, keys, dtype=torch.bool, device=device)
    own[0, 0] = False
    return earlier & ~own


@fault("multi_head_attention.next-key-seen", "causality", seam="earlier", choices=CAUSAL)
def next_key_seen(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """A query sees the key after it: tril with a diagonal of 1. The answer leaks."""
    ones = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return ones.tril(diagonal=1)[None, None]
