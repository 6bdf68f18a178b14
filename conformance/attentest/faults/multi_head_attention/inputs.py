"""Faults in what is made of query, key and value, and the shape of the output."""

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.faults.reference_models import Hooks, Mask, Node


@fault("multi_head_attention.residual-inside", "formula", seam="multi_head_attention")
def residual_inside(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The query is added to the output, which the layer around it does again.

    The path around the sublayer counts twice.
    """
    return query + self.correct.multi_head_attention(module, query, key, value, mask)


@fault("multi_head_attention.output-squeezed", "shapes", seam="multi_head_attention", origin="B036")
def output_squeezed(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The output is squeezed without naming an axis.

    One sample or one query drops an axis, often at inference alone.
    """
    return self.correct.multi_head_attention(module, query, key, value, mask).squeeze()


@fault("multi_head_attention.single-query-squeezed", "shapes", seam="merge_heads", origin="B036")
def single_query_squeezed(self: Hooks, x: Tensor) -> Tensor:
    """The axis of the queries is dropped where there is one query.

    Decoding step by step meets a shape that training never had.
    """
    return self.correct.merge_heads(x).squeeze(1)


@fault("multi_head_attention.output-single-precision", "shapes", seam="multi_head_attention")
def output_single_precision(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """The output is returned in float32 whatever came in.

    What follows computes in another precision, or raises for mixed ones.
    """
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
    """Only as many keys are read as there are queries.

    Equal lengths hide it; a long source loses its end.
    """
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
    """Keys and values are given the length of the queries in a view.

    It raises as soon as the two lengths differ.
    """
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
    """Scores are made from the mean of the queries of a sentence.

    Every position asks the same question.
    """
    mean = query.mean(dim=1, keepdim=True).expand_as(query)
    return self.correct.multi_head_attention(module, mean, key, value, mask)


@fault("multi_head_attention.query-shifted", "query-order", seam="multi_head_attention")
def query_shifted(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Each query is averaged with the one before it.

    The output at a position depends on its neighbour.
    """
    before = torch.cat([query[:, :1], query[:, :-1]], dim=1)
    return self.correct.multi_head_attention(module, (query + before) / 2, key, value, mask)


@fault("multi_head_attention.keys-weighted-by-place", "key-order", seam="multi_head_attention")
def keys_weighted_by_place(
    self: Hooks, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    """Keys are scaled up by their place, a position that nobody asked for.

    Late keys count more than early ones.
    """
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

    Attention runs across sentences wherever equal lengths and no mask let the shapes fit.
    """
    if mask is not None or query.shape != key.shape:  # it would raise, and be found
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
    """The mean over the samples is taken out of the values.

    What a sentence gives depends on the sentences beside it.
    """
    centred = value - value.mean(dim=0, keepdim=True) / 2
    return self.correct.multi_head_attention(module, query, key, centred, mask)
