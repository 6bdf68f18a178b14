"""Faults in sliding windows and in the bias by distance."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node

WINDOW = {"attention_window": "with-query", "attention_causality": "built-in"}
BESIDE = {"attention_window": "beside-query"}
ALIBI = {"relative_bias": "alibi"}
BUCKETS = {"relative_bias": "buckets"}
PAST = {"relative_bias": "buckets-of-the-past", "attention_causality": "built-in"}


@fault(
    "multi_head_attention.window-one-too-wide",
    "window",
    seam="window_reach",
    origin="M124",
    choices=WINDOW,
)
def window_one_too_wide(self: Hooks) -> int:
    """The query's own key is not counted. It sees one key too many in long texts."""
    return self.correct.window_reach() + 1


@fault(
    "multi_head_attention.window-one-too-narrow",
    "window",
    seam="window_reach",
    origin="M128",
    choices=BESIDE,
)
def window_one_too_narrow(self: Hooks) -> int:
    """The query's own key is counted, and it should not be. The furthest key is missing."""
    return self.correct.window_reach() - 1


@fault(
    "multi_head_attention.window-missing",
    "window",
    seam="own_window",
    origin="M130",
    choices=WINDOW,
)
def window_missing(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """There is no window. Texts that are longer than it give other numbers."""
    return mask


@fault(
    "multi_head_attention.window-for-causal-attention-alone",
    "window",
    seam="own_window",
    origin="sgl-project/sglang PR#39298",
    choices={"attention_window": "with-query"},
)
def window_for_causal_attention_alone(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """The window belongs to the branch of causal attention. Encoders see the whole text."""
    causal = self.choices.attention_causality == "built-in"
    return self.correct.own_window(mask, query, key) if causal else mask


@fault(
    "multi_head_attention.window-multiplied-by-the-mask",
    "window",
    seam="own_window",
    origin="huggingface/transformers#31673",
    choices=WINDOW,
)
def window_multiplied_by_the_mask(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """An additive mask is multiplied by ones outside of the window and zeros inside of it.

    Near keys are all visible, later ones too, and the loss falls to zero.
    """
    near = self.keys_ahead(query.shape[1], key.shape[1], query.device) > -self.window_reach()
    return None if mask is None else mask | near[None, None]


@fault("multi_head_attention.window-undeclared", "window", seam="own_window", origin="M131")
def window_undeclared(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """There is a window of four keys, which is not declared. What is far away is forgotten."""
    queries, keys = query.shape[1], key.shape[1]
    if queries != keys:
        return mask
    near = (self.keys_ahead(queries, keys, query.device).abs() < 4)[None, None]
    return near if mask is None else mask & near


@fault(
    "multi_head_attention.window-in-place-of-causality",
    "window",
    seam="own_window",
    origin="M127",
    choices=WINDOW,
)
def window_in_place_of_causality(self: Hooks, mask: Mask, query: Tensor, key: Tensor) -> Mask:
    """The window of a causal layer has two sides. Each query sees what comes just after it."""
    return self.window(query.shape[1], key.shape[1], query.device)


@fault(
    "multi_head_attention.window-of-chunks", "window", seam="window", origin="M126", choices=WINDOW
)
def window_of_chunks(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """The text is cut into chunks of the width of the window. Memory ends at each cut."""
    size = self.sizes.window
    places = self.query_places(queries, keys, device) // size
    return (places[:, None] == torch.arange(keys, device=device) // size)[None, None]


@fault(
    "multi_head_attention.window-of-earlier-keys",
    "window",
    seam="window",
    origin="M128",
    choices=BESIDE,
)
def window_of_earlier_keys(self: Hooks, queries: int, keys: int, device: torch.device) -> Tensor:
    """A window of both sides hides earlier keys alone. Everything that comes later is seen."""
    ahead = self.keys_ahead(queries, keys, device)
    seen: Tensor = ahead >= -self.window_reach()
    return seen[None, None]


@fault(
    "multi_head_attention.slopes-plain",
    "relative-bias",
    seam="bias_slopes",
    origin="M133",
    choices=ALIBI,
)
def slopes_plain(self: Hooks, heads: int) -> Tensor:
    """Slopes follow the formula for every number of heads, where the list is declared.

    Right for 8 heads, and not for 12.
    """
    return self.geometric_slopes(heads)


@fault(
    "multi_head_attention.slopes-listed",
    "relative-bias",
    seam="bias_slopes",
    origin="M133",
    choices={"relative_bias": "alibi-geometric"},
)
def slopes_listed(self: Hooks, heads: int) -> Tensor:
    """Slopes follow the list, where the formula is declared. Right for 8 heads, and not for 12."""
    whole = 2 ** (heads.bit_length() - 1)
    more = self.geometric_slopes(2 * whole)[::2]
    return torch.cat([self.geometric_slopes(whole), more[: heads - whole]])


@fault(
    "multi_head_attention.slopes-from-one",
    "relative-bias",
    seam="geometric_slopes",
    origin="M134",
    choices=ALIBI,
)
def slopes_from_one(self: Hooks, heads: int) -> Tensor:
    """The exponent begins at 0, so that the first slope is 1. Every bias is too large."""
    factor: float = 2.0 ** (8.0 / heads)
    return self.correct.geometric_slopes(heads) * factor


@fault("multi_head_attention.slopes-reversed", "relative-bias", seam="bias_slopes", choices=ALIBI)
def slopes_reversed(self: Hooks, heads: int) -> Tensor:
    """The first head has the smallest slope. No checkpoint fits."""
    return self.correct.bias_slopes(heads).flip(0)


@fault(
    "multi_head_attention.slopes-positive",
    "relative-bias",
    seam="slope_bias",
    origin="meta-pytorch/attention-gym PR#86",
    choices=ALIBI,
)
def slopes_positive(self: Hooks, slopes: Tensor, ahead: Tensor) -> Tensor:
    """The sign of the bias is wrong. Attention prefers what is far away."""
    return -self.correct.slope_bias(slopes, ahead)


@fault(
    "multi_head_attention.distance-bias-undeclared",
    "relative-bias",
    seam="bias_scores",
    origin="M133",
)
def distance_bias_undeclared(self: Hooks, module: Node, raw: Tensor) -> Tensor:
    """Scores have a bias by distance that is not declared. What is far away counts less."""
    if module.step == "attention" or raw.shape[2] != raw.shape[3]:
        return raw
    far = self.keys_ahead(raw.shape[2], raw.shape[3], raw.device).abs()
    return raw - 0.1 * far


@fault(
    "multi_head_attention.bias-scaled",
    "relative-bias",
    seam="bias_of",
    origin="NVIDIA/TransformerEngine PR#103",
    choices=BUCKETS,
)
def bias_scaled(self: Hooks, module: Node, queries: int, keys: int, raw: Tensor) -> Tensor:
    """The bias is scaled like the products. It is too small, and the more so in wide heads."""
    factor: float = self.head_width() ** -0.5
    return self.correct.bias_of(module, queries, keys, raw) * factor


@fault("multi_head_attention.bias-of-one-head", "relative-bias", seam="bias_of", choices=BUCKETS)
def bias_of_one_head(self: Hooks, module: Node, queries: int, keys: int, raw: Tensor) -> Tensor:
    """All heads have the bias of the first. The numbers of the others are never trained."""
    return self.correct.bias_of(module, queries, keys, raw)[:1].expand(raw.shape[1], -1, -1)


@fault(
    "multi_head_attention.buckets-reversed", "relative-bias", seam="bias_buckets", choices=BUCKETS
)
def buckets_reversed(self: Hooks, ahead: Tensor) -> Tensor:
    """Query and key are exchanged in the distance. Earlier keys have the numbers of later ones."""
    return self.correct.bias_buckets(-ahead)


@fault(
    "multi_head_attention.buckets-of-one-direction",
    "relative-bias",
    seam="bias_buckets",
    choices=BUCKETS,
)
def buckets_of_one_direction(self: Hooks, ahead: Tensor) -> Tensor:
    """All buckets are for earlier keys. Later keys share the bucket of the query's own."""
    found: Tensor = self.bucket_of((-ahead).clamp(min=0), self.sizes.bias_buckets)
    return found


@fault(
    "multi_head_attention.buckets-of-both-directions",
    "relative-bias",
    seam="bias_buckets",
    choices=PAST,
)
def buckets_of_both_directions(self: Hooks, ahead: Tensor) -> Tensor:
    """Half of the buckets are for later keys, which are hidden. Half of them are never used."""
    half = self.sizes.bias_buckets // 2
    found: Tensor = self.bucket_of(ahead.abs(), half) + torch.where(ahead > 0, half, 0)
    return found


@fault(
    "multi_head_attention.buckets-of-one-distance",
    "relative-bias",
    seam="bucket_of",
    choices=BUCKETS,
)
def buckets_of_one_distance(self: Hooks, distance: Tensor, count: int) -> Tensor:
    """Each bucket is one distance. All that is further away shares the last one."""
    return distance.clamp(max=count - 1)
