"""Faults in the use of query, key and value, and in the shape of the output."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("multi_head_attention.residual-inside", "formula", seam="multi_head_attention")
def residual_inside(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The query is added to the output. The residual path counts twice."""
    return query + self.correct.multi_head_attention(module, query, key, value, mask)


@fault("multi_head_attention.output-squeezed", "shapes", seam="multi_head_attention", origin="B036")
def output_squeezed(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The output is squeezed without an axis. One sample or one query drops an axis."""
    return self.correct.multi_head_attention(module, query, key, value, mask).squeeze()


@fault("multi_head_attention.single-query-squeezed", "shapes", seam="merge_heads", origin="B036")
def single_query_squeezed(self: Hooks, x: Tensor) -> Tensor:
    """The query axis is dropped for one query. Step-by-step decoding meets another shape."""
    return self.correct.merge_heads(x).squeeze(1)


@fault("multi_head_attention.output-single-precision", "shapes", seam="multi_head_attention")
def output_single_precision(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The output is always float32. Later layers compute in another precision, or raise."""
    return self.correct.multi_head_attention(module, query, key, value, mask).float()


@fault(
    "multi_head_attention.keys-cut-to-queries",
    "cross-lengths",
    seam="multi_head_attention",
    origin="B035",
)
def keys_cut_to_queries(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Only as many keys are read as there are queries. A long source loses its end."""
    length = query.shape[1]
    beyond = torch.arange(key.shape[1], device=key.device) >= length
    kept = ~beyond if mask is None else mask & ~beyond
    none_left = ~kept.any(dim=-1, keepdim=True)
    return self.correct.multi_head_attention(module, query, key, value, kept | none_left)


@fault(
    "multi_head_attention.keys-viewed-as-queries",
    "cross-lengths",
    seam="multi_head_attention",
    origin="B035",
    kind="loud",
)
def keys_viewed_as_queries(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Keys are viewed with the length of the queries. It raises where the lengths differ."""
    shape = query.shape
    return self.correct.multi_head_attention(
        module, query, key.reshape(shape), value.reshape(shape), mask
    )


@fault("multi_head_attention.values-from-query", "every-input-counts", seam="multi_head_attention")
def values_from_query(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The values are taken from the query wherever the lengths allow it.

    Self-attention hides it; attention to a memory of equal length ignores it.
    """
    source = query if query.shape == value.shape else value
    return self.correct.multi_head_attention(module, query, key, source, mask)


@fault(
    "multi_head_attention.values-from-key",
    "every-input-counts",
    seam="multi_head_attention",
    origin="B032",
)
def values_from_key(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The value input is ignored, and the key used in its place.

    Right wherever key and value are one tensor, as in every layer of the paper.
    """
    return self.correct.multi_head_attention(module, query, key, key, mask)


@fault("multi_head_attention.query-averaged", "every-input-counts", seam="multi_head_attention")
def query_averaged(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Scores use the mean query of the sequence. Every position asks the same question."""
    mean = query.mean(dim=1, keepdim=True).expand_as(query)
    return self.correct.multi_head_attention(module, mean, key, value, mask)


@fault("multi_head_attention.query-shifted", "query-order", seam="multi_head_attention")
def query_shifted(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Each query is averaged with the one before. Outputs depend on the neighbour."""
    before = torch.cat([query[:, :1], query[:, :-1]], dim=1)
    return self.correct.multi_head_attention(module, (query + before) / 2, key, value, mask)


@fault("multi_head_attention.keys-weighted-by-place", "key-order", seam="multi_head_attention")
def keys_weighted_by_place(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Keys are scaled up by their position. Late keys count more than early ones."""
    place = torch.arange(key.shape[1], dtype=key.dtype, device=key.device)
    return self.correct.multi_head_attention(
        module, query, key * (1 + place / 10)[:, None], value, mask
    )


@fault(
    "multi_head_attention.sequence-first",
    "batch-independence",
    seam="multi_head_attention",
    origin="B127",
)
def sequence_first(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Inputs are read as (length, batch, width).

    Attention runs across sequences where the shapes fit.
    """
    if mask is not None or query.shape != key.shape:  # it would raise
        return self.correct.multi_head_attention(module, query, key, value, mask)
    turned = (one.transpose(0, 1) for one in (query, key, value))
    return self.correct.multi_head_attention(module, *turned).transpose(0, 1)


@fault(
    "multi_head_attention.values-centred-over-batch",
    "batch-independence",
    seam="multi_head_attention",
)
def values_centred_over_batch(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The mean over the batch is subtracted from the values. Samples affect each other."""
    centred = value - value.mean(dim=0, keepdim=True) / 2
    return self.correct.multi_head_attention(module, query, key, centred, mask)
