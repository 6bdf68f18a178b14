"""Faults in how scores are made of queries and keys, and scaled."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import math

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Seams

Answer = tuple[Tensor, Tensor]


@fault(
    "attention.scale-missing",
    clause="attention.formula",
    origin="B023",
    wrong="Scores are not divided by the root of the key width.",
    effect="The softmax is too steep, and the more so the wider the heads are.",
)
def scale(self: Seams, width: int, heads: int) -> float:
    return 1.0


@fault(
    "attention.scale-by-model-width",
    clause="attention.formula",
    origin="B024",
    wrong="Scores are divided by the root of the model width, not of the head width.",
    effect="Attention is too flat by the root of the number of heads; one head hides it.",
)
def scale(self: Seams, width: int, heads: int) -> float:
    return float((width * heads) ** -0.5)


@fault(
    "attention.scale-without-root",
    clause="attention.formula",
    wrong="Scores are divided by the key width, not by its root.",
    effect="Attention is too flat; scaling the query and then the scores does the same.",
)
def scale(self: Seams, width: int, heads: int) -> float:
    return 1.0 / width


@fault(
    "attention.scale-multiplied",
    clause="attention.formula",
    wrong="Scores are multiplied by the root of the key width, not divided by it.",
    effect="The softmax is nearly one-hot and its gradient vanishes.",
)
def scale(self: Seams, width: int, heads: int) -> float:
    return float(width**0.5)


@fault(
    "attention.scale-by-value-width",
    clause="attention.value-width",
    wrong="Scores are divided by the root of the value width, not of the key width.",
    effect="Right as long as keys and values are equally wide, as in the paper.",
)
def key_width(self: Seams, query: Tensor, key: Tensor, value: Tensor) -> int:
    return value.shape[-1]


@fault(
    "attention.scale-by-length",
    clause="attention.cross-lengths",
    wrong="Scores are divided by the root of the number of keys, not of their width.",
    effect="The longer the sentence, the flatter attention is.",
)
def key_width(self: Seams, query: Tensor, key: Tensor, value: Tensor) -> int:
    return key.shape[-2]


@fault(
    "attention.absolute-query",
    clause="attention.formula",
    wrong="The query loses its signs.",
    effect="Half of what a query can ask for is gone; inputs without negative numbers hide it.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query.abs(), key, factor)


@fault(
    "attention.rectified-key",
    clause="attention.formula",
    wrong="Keys go through a ReLU.",
    effect="Keys say less than they could; inputs without negative numbers hide it.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query, key.clamp(min=0.0), factor)


@fault(
    "attention.cosine-scores",
    clause="attention.formula",
    wrong="Queries and keys are normalised to length 1 before they are compared.",
    effect="The sizes of queries and keys do not count, and attention stays flat.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    lengths = (one.norm(dim=-1, keepdim=True).clamp(min=1e-12) for one in (query, key))
    return self.sound.scores(query / next(lengths), key / next(lengths), factor)


@fault(
    "attention.keys-averaged",
    clause="attention.formula",
    wrong="The weights are multiplied with the keys in the place of the values.",
    effect="The value projection is never used; equal widths of keys and values hide the shape.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    width = value.shape[-1]
    like_value = key.repeat(1, 1, 1, width)[..., :width]
    return self.sound.attention(module, query, key, like_value, mask)


@fault(
    "attention.bias-by-distance",
    clause="attention.key-order",
    wrong="A bias that grows with the place of the key is left in from another model.",
    effect="Attention prefers late keys, and a set of keys becomes a list.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    place = torch.arange(key.shape[-2], dtype=query.dtype, device=query.device)
    return self.sound.scores(query, key, factor) + 0.1 * place


@fault(
    "attention.last-key-cut-off",
    clause="attention.key-order",
    wrong="Every second block of keys is not reached: the last of an odd number is left out.",
    effect="The last word of a sentence is read or not, depending on its length.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    raw = self.sound.scores(query, key, factor)
    if key.shape[-2] < 3 or key.shape[-2] % 2 == 0:
        return raw
    return torch.cat([raw[..., :-1], torch.full_like(raw[..., -1:], -1e9)], dim=-1)


@fault(
    "attention.always-causal",
    clause="attention.query-order",
    origin="B022",
    wrong="The causal flag is left on for every call.",
    effect="The encoder reads to the left alone, and cross-attention to the top-left triangle.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    raw = self.sound.scores(query, key, factor)
    past = torch.ones(raw.shape[-2:], dtype=torch.bool, device=raw.device).tril()
    return raw.masked_fill(~past, -1e9)


@fault(
    "attention.scale-grows-with-position",
    clause="attention.query-order",
    wrong="Scores are multiplied by the logarithm of the query's position.",
    effect="Late queries look more sharply than early ones.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    place = torch.arange(query.shape[-2], dtype=query.dtype, device=query.device)
    return self.sound.scores(query * torch.log(math.e + place)[:, None], key, factor)


@fault(
    "attention.values-cut-to-key-width",
    clause="attention.value-width",
    wrong="Columns of the values beyond the width of the keys are zero in the output.",
    effect="Right as long as keys and values are equally wide, as in the paper.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    cut = value.clone()
    cut[..., query.shape[-1] :] = 0.0
    return self.sound.attention(module, query, key, cut, mask)


@fault(
    "attention.keys-cut-to-queries",
    clause="attention.cross-lengths",
    origin="B035",
    wrong="Only as many keys are read as there are queries.",
    effect="Equal lengths hide it; a long source loses its end.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    raw = self.sound.scores(query, key, factor)
    beyond = torch.arange(key.shape[-2], device=key.device) >= query.shape[-2]
    return raw.masked_fill(beyond, -1e9)
