"""Faults in the scores of queries and keys, and in their scale."""

import math

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Answer, Hooks, Mask, Node


@fault("attention.scale-missing", "formula", seam="scale", origin="B023")
def scale_missing(self: Hooks, width: int, heads: int) -> float:
    """Scores are not divided by the root of the key width.

    The softmax is too steep, and the more so the wider the heads are.
    """
    return 1.0


@fault("attention.scale-by-model-width", "formula", seam="scale", origin="B024")
def scale_by_model_width(self: Hooks, width: int, heads: int) -> float:
    """Scores are divided by the root of the model width, not of the head width.

    Attention is too flat by the root of the number of heads; one head hides it.
    """
    return float((width * heads) ** -0.5)


@fault("attention.scale-without-root", "formula", seam="scale")
def scale_without_root(self: Hooks, width: int, heads: int) -> float:
    """Scores are divided by the key width, not by its root.

    Attention is too flat; scaling the query and then the scores does the same.
    """
    return 1.0 / width


@fault("attention.scale-multiplied", "formula", seam="scale")
def scale_multiplied(self: Hooks, width: int, heads: int) -> float:
    """Scores are multiplied by the root of the key width, not divided by it.

    The softmax is nearly one-hot and its gradient vanishes.
    """
    return float(width**0.5)


@fault("attention.scale-by-value-width", "value-width", seam="key_width")
def scale_by_value_width(self: Hooks, query: Tensor, key: Tensor, value: Tensor) -> int:
    """Scores are divided by the root of the value width, not of the key width.

    Right as long as keys and values are equally wide, as in the paper.
    """
    return value.shape[-1]


@fault("attention.scale-by-length", "cross-lengths", seam="key_width")
def scale_by_length(self: Hooks, query: Tensor, key: Tensor, value: Tensor) -> int:
    """Scores are divided by the root of the number of keys, not of their width.

    The longer the sequence, the flatter attention is.
    """
    return key.shape[-2]


@fault("attention.absolute-query", "formula", seam="scores")
def absolute_query(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The query loses its signs. Non-negative inputs hide it."""
    return self.correct.scores(query.abs(), key, factor)


@fault("attention.rectified-key", "formula", seam="scores")
def rectified_key(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Keys go through a ReLU. Non-negative inputs hide it."""
    return self.correct.scores(query, key.clamp(min=0.0), factor)


@fault("attention.cosine-scores", "formula", seam="scores")
def cosine_scores(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Queries and keys are normalised to length 1 before they are compared.

    The sizes of queries and keys do not count, and attention stays flat.
    """
    lengths = (one.norm(dim=-1, keepdim=True).clamp(min=1e-12) for one in (query, key))
    return self.correct.scores(query / next(lengths), key / next(lengths), factor)


@fault("attention.keys-averaged", "formula", seam="attention")
def keys_averaged(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """The weights are multiplied with the keys instead of the values. The values are never used."""
    width = value.shape[-1]
    like_value = key.repeat(1, 1, 1, width)[..., :width]
    return self.correct.attention(module, query, key, like_value, mask)


@fault("attention.bias-by-distance", "key-order", seam="scores")
def bias_by_distance(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """A bias that grows with the place of the key is left in from another model.

    Attention prefers late keys, and a set of keys becomes a list.
    """
    place = torch.arange(key.shape[-2], dtype=query.dtype, device=query.device)
    return self.correct.scores(query, key, factor) + 0.1 * place


@fault("attention.last-key-cut-off", "key-order", seam="scores")
def last_key_cut_off(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The last of an odd number of key blocks is left out. The last token may not be read."""
    raw = self.correct.scores(query, key, factor)
    if key.shape[-2] < 3 or key.shape[-2] % 2 == 0:
        return raw
    return torch.cat([raw[..., :-1], torch.full_like(raw[..., -1:], -1e9)], dim=-1)


@fault("attention.always-causal", "query-order", seam="scores", origin="B022")
def always_causal(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """The causal flag is always on. The encoder reads to the left alone."""
    raw = self.correct.scores(query, key, factor)
    past = torch.ones(raw.shape[-2:], dtype=torch.bool, device=raw.device).tril()
    return raw.masked_fill(~past, -1e9)


@fault("attention.scale-grows-with-position", "query-order", seam="scores")
def scale_grows_with_position(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Scores grow with the logarithm of the query's position. Late queries are too sharp."""
    place = torch.arange(query.shape[-2], dtype=query.dtype, device=query.device)
    return self.correct.scores(query * torch.log(math.e + place)[:, None], key, factor)


@fault("attention.values-cut-to-key-width", "value-width", seam="attention")
def values_cut_to_key_width(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    """Columns of the values beyond the width of the keys are zero in the output.

    Right as long as keys and values are equally wide, as in the paper.
    """
    cut = value.clone()
    cut[..., query.shape[-1] :] = 0.0
    return self.correct.attention(module, query, key, cut, mask)


@fault("attention.keys-cut-to-queries", "cross-lengths", seam="scores", origin="B035")
def keys_cut_to_queries(self: Hooks, query: Tensor, key: Tensor, factor: float) -> Tensor:
    """Only as many keys are read as there are queries. A long source loses its end."""
    raw = self.correct.scores(query, key, factor)
    beyond = torch.arange(key.shape[-2], device=key.device) >= query.shape[-2]
    return raw.masked_fill(beyond, -1e9)
