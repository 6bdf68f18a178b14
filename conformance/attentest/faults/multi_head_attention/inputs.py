"""Faults in what is made of query, key and value, and the shape of the output."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "multi_head_attention.residual-inside",
    clause="multi_head_attention.formula",
    wrong="The query is added to the output, which the layer around it does again.",
    effect="The path around the sublayer counts twice.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return query + self.sound.multi_head_attention(module, query, key, value, mask)


@fault(
    "multi_head_attention.output-squeezed",
    clause="multi_head_attention.shapes",
    origin="B036",
    wrong="The output is squeezed without naming an axis.",
    effect="One sample or one query drops an axis, often at inference alone.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return self.sound.multi_head_attention(module, query, key, value, mask).squeeze()


@fault(
    "multi_head_attention.single-query-squeezed",
    clause="multi_head_attention.shapes",
    origin="B036",
    wrong="The axis of the queries is dropped where there is one query.",
    effect="Decoding step by step meets a shape that training never had.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x).squeeze(1)


@fault(
    "multi_head_attention.output-single-precision",
    clause="multi_head_attention.shapes",
    wrong="The output is returned in float32 whatever came in.",
    effect="What follows computes in another precision, or raises for mixed ones.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return self.sound.multi_head_attention(module, query, key, value, mask).float()


@fault(
    "multi_head_attention.keys-cut-to-queries",
    clause="multi_head_attention.cross-lengths",
    origin="B035",
    wrong="Only as many keys are read as there are queries.",
    effect="Equal lengths hide it; a long source loses its end.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    length = query.shape[1]
    beyond = torch.arange(key.shape[1], device=key.device) >= length
    kept = ~beyond if mask is None else mask & ~beyond
    none_left = ~kept.any(dim=-1, keepdim=True)
    return self.sound.multi_head_attention(module, query, key, value, kept | none_left)


@fault(
    "multi_head_attention.keys-viewed-as-queries",
    clause="multi_head_attention.cross-lengths",
    origin="B035",
    wrong="Keys and values are given the length of the queries in a view.",
    effect="It raises as soon as the two lengths differ.",
    kind="loud",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    shape = query.shape
    return self.sound.multi_head_attention(
        module, query, key.reshape(shape), value.reshape(shape), mask
    )


@fault(
    "multi_head_attention.values-from-query",
    clause="multi_head_attention.every-input-counts",
    wrong="The values are taken from the query wherever the lengths allow it.",
    effect="Self-attention hides it; attention to a memory of equal length ignores it.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    source = query if query.shape == value.shape else value
    return self.sound.multi_head_attention(module, query, key, source, mask)


@fault(
    "multi_head_attention.values-from-key",
    clause="multi_head_attention.every-input-counts",
    origin="B032",
    wrong="The value input is ignored, and the key used in its place.",
    effect="Right wherever key and value are one tensor, as in every layer of the paper.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return self.sound.multi_head_attention(module, query, key, key, mask)


@fault(
    "multi_head_attention.query-averaged",
    clause="multi_head_attention.every-input-counts",
    wrong="Scores are made from the mean of the queries of a sentence.",
    effect="Every position asks the same question.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    mean = query.mean(dim=1, keepdim=True).expand_as(query)
    return self.sound.multi_head_attention(module, mean, key, value, mask)


@fault(
    "multi_head_attention.query-shifted",
    clause="multi_head_attention.query-order",
    wrong="Each query is averaged with the one before it.",
    effect="The output at a position depends on its neighbour.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    before = torch.cat([query[:, :1], query[:, :-1]], dim=1)
    return self.sound.multi_head_attention(module, (query + before) / 2, key, value, mask)


@fault(
    "multi_head_attention.keys-weighted-by-place",
    clause="multi_head_attention.key-order",
    wrong="Keys are scaled up by their place, a position that nobody asked for.",
    effect="Late keys count more than early ones.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    place = torch.arange(key.shape[1], dtype=key.dtype, device=key.device)
    return self.sound.multi_head_attention(
        module, query, key * (1 + place / 10)[:, None], value, mask
    )


@fault(
    "multi_head_attention.sequence-first",
    clause="multi_head_attention.batch-independence",
    origin="B127",
    wrong="Inputs are read as (length, batch, width).",
    effect="Attention runs across sentences wherever equal lengths and no mask let the shapes fit.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    if mask is not None or query.shape != key.shape:  # it would raise, and be found
        return self.sound.multi_head_attention(module, query, key, value, mask)
    turned = (one.transpose(0, 1) for one in (query, key, value))
    return self.sound.multi_head_attention(module, *turned, mask).transpose(0, 1)


@fault(
    "multi_head_attention.values-centred-over-batch",
    clause="multi_head_attention.batch-independence",
    wrong="The mean over the samples is taken out of the values.",
    effect="What a sentence gives depends on the sentences beside it.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    centred = value - value.mean(dim=0, keepdim=True) / 2
    return self.sound.multi_head_attention(module, query, key, centred, mask)
