"""Faults of the chapter `multi_head_attention`: each overrides the seam that it is named after."""

# ruff: noqa: F811
# mypy: disable-error-code="no-redef"

import torch
from torch import Tensor, nn

from attentest.faults.fault import fault
from attentest.specimens import Mask, Node, Seams


@fault(
    "multi_head_attention.output-projection-missing",
    clause="multi_head_attention.formula",
    origin="B033",
    wrong="The heads are laid side by side and returned; the output projection is left out.",
    effect="Heads are never mixed, and the columns of one head see no other.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return x if name == "output" else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.output-projection-twice",
    clause="multi_head_attention.formula",
    origin="C: the output projection is applied twice",
    wrong="The output projection is applied to its own result once more.",
    effect="It trains, and no other implementation reads its weights.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    once = self.sound.project(module, name, x)
    return self.sound.project(module, name, once) if name == "output" else once


@fault(
    "multi_head_attention.scaled-by-model-width",
    clause="multi_head_attention.formula",
    origin="B024",
    wrong="The query is divided by the root of the number of heads on top of the scale.",
    effect="Scores are divided by the root of the model width; one head hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.sizes.heads**-0.5 if name == "query" else projected


@fault(
    "multi_head_attention.scaled-before-and-after",
    clause="multi_head_attention.formula",
    wrong="The query is scaled when it is projected, and the scores are scaled again.",
    effect="Attention is too flat by the root of the head width.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.head_width() ** -0.5 if name == "query" else projected


@fault(
    "multi_head_attention.rectified-value",
    clause="multi_head_attention.formula",
    wrong="Values go through a ReLU after their projection.",
    effect="Half of what a value can say is gone; inputs without negative numbers hide it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.clamp(min=0.0) if name == "value" else projected


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
    "multi_head_attention.heads-averaged",
    clause="multi_head_attention.formula",
    wrong="All heads are given the mean of what they found before they are laid side by side.",
    effect="Several heads do the work of one.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x.mean(dim=1, keepdim=True).expand_as(x).contiguous())


@fault(
    "multi_head_attention.heads-as-wide-as-model",
    clause="multi_head_attention.head-width",
    origin="C: every head is as wide as the model",
    wrong="Every head is as wide as the model where they should share it.",
    effect="As many times the parameters as there are heads; no checkpoint fits.",
)
def head_width(self: Seams) -> int:
    return self.sizes.d_model


@fault(
    "multi_head_attention.wide-heads-shared",
    clause="multi_head_attention.head-width",
    wrong="The heads share the model width where each is declared to have all of it.",
    effect="Fewer parameters than declared; no checkpoint fits.",
    choices={"head_width": "d"},
)
def head_width(self: Seams) -> int:
    return max(1, self.sizes.d_model // self.sizes.heads)


@fault(
    "multi_head_attention.wide-heads-scaled-as-shared",
    clause="multi_head_attention.head-width",
    wrong="Heads as wide as the model are scaled as if they shared it.",
    effect="The shapes fit, and attention is too steep by the root of the number of heads.",
    choices={"head_width": "d"},
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * self.sizes.heads**0.5 if name == "query" else projected


@fault(
    "multi_head_attention.query-bias-dropped",
    clause="multi_head_attention.projection-bias",
    wrong="The bias of the query projection is there and not added.",
    effect="It stays as it was born; zero at birth hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected - _bias(self, module, name, x) if name == "query" else projected


@fault(
    "multi_head_attention.value-bias-dropped",
    clause="multi_head_attention.projection-bias",
    wrong="The bias of the value projection is there and not added.",
    effect="It stays as it was born; zero at birth hides it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected - _bias(self, module, name, x) if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-per-head",
    clause="multi_head_attention.projection-bias",
    wrong="The output is projected head by head and summed, its bias with each of them.",
    effect="The bias counts as many times as there are heads.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "output":
        return projected
    return projected + (self.sizes.heads - 1) * _bias(self, module, name, x)


def _bias(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    """Return the bias of the projection `name`: what it makes of zeros."""
    return self.sound.project(module, name, torch.zeros_like(x))


@fault(
    "multi_head_attention.bias-undeclared",
    clause="multi_head_attention.projection-bias",
    wrong="The projections have biases, random at birth, where none are declared.",
    effect="A checkpoint without them leaves them as they are.",
    choices={"projection_bias": "none"},
)
def make_multi_head_attention(self: Seams) -> Node:
    built = _with_biases(self)
    for values in built.parameters():
        if values.dim() == 1:
            nn.init.normal_(values)
    return built


@fault(
    "multi_head_attention.bias-undeclared-and-zero",
    clause="multi_head_attention.parameter-count",
    wrong="The projections have biases, zero at birth, where none are declared.",
    effect="Everything fits until the first step of training.",
    choices={"projection_bias": "none"},
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    return _with_biases(self)


def _with_biases(self: Seams) -> Node:
    present = self.choices.but(projection_bias="present")
    return type(self.sound)(self.sizes, present).make_multi_head_attention()


@fault(
    "multi_head_attention.projection-unused",
    clause="multi_head_attention.parameter-count",
    wrong="A fifth projection is made and never used.",
    effect="It is saved, counted and decayed, and a strict load elsewhere refuses it.",
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    built = self.sound.make_multi_head_attention()
    built.how = self
    built.extra = self.make_linear(self.sizes.d_model, self.sizes.d_model)
    return built


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
    "multi_head_attention.single-head-unprojected",
    clause="multi_head_attention.one-head-is-attention",
    wrong="With one head the output projection is taken to be superfluous and skipped.",
    effect="Right with two heads or more.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    superfluous = name == "output" and self.sizes.heads == 1
    return x if superfluous else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.single-head-values-raw",
    clause="multi_head_attention.one-head-is-attention",
    wrong="With one head the values are not projected.",
    effect="Right with two heads or more.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    raw = name == "value" and self.sizes.heads == 1 and self.head_width() == x.shape[-1]
    return x if raw else self.sound.project(module, name, x)


@fault(
    "multi_head_attention.query-by-key-weight",
    clause="multi_head_attention.own-projections",
    origin="B032",
    wrong="The query is projected by the weight of the keys: a line copied and not changed.",
    effect="The query projection is never trained, and scores are symmetric.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, "key" if name == "query" else name, x)


@fault(
    "multi_head_attention.value-by-key-weight",
    clause="multi_head_attention.own-projections",
    origin="B032",
    wrong="The value is projected by the weight of the keys.",
    effect="The value projection is never trained.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, "key" if name == "value" else name, x)


@fault(
    "multi_head_attention.query-and-key-swapped",
    clause="multi_head_attention.own-projections",
    wrong="Query and key are projected by each other's weight.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    other = {"query": "key", "key": "query"}
    return self.sound.project(module, other.get(name, name), x)


@fault(
    "multi_head_attention.split-without-transpose",
    clause="multi_head_attention.heads-are-slices",
    origin="B029; C: heads are made by a view, without a transpose",
    wrong="Heads are made by one view (B, H, L, E), without a transpose.",
    effect="A head is a slice of the sentence, not of the features.",
)
def split_heads(self: Seams, x: Tensor) -> Tensor:
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, heads, length, columns // heads)


@fault(
    "multi_head_attention.heads-interleaved",
    clause="multi_head_attention.heads-are-slices",
    wrong="Columns are dealt out to the heads in turn, not in slices.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def split_heads(self: Seams, x: Tensor) -> Tensor:
    batch, length, columns = x.shape
    heads = self.sizes.heads
    return x.reshape(batch, length, columns // heads, heads).permute(0, 3, 1, 2)


@fault(
    "multi_head_attention.heads-merged-backwards",
    clause="multi_head_attention.heads-are-slices",
    wrong="The heads are laid side by side from the last to the first.",
    effect="It trains as well as ever; a checkpoint from elsewhere gives another model.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return self.sound.merge_heads(x.flip(1))


@fault(
    "multi_head_attention.columns-merged-interleaved",
    clause="multi_head_attention.heads-are-slices",
    wrong="Heads are split as slices and merged column by column.",
    effect="The output projection reads columns in another order than it was saved in.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).flatten(2)


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
    "multi_head_attention.last-key-cut-off",
    clause="multi_head_attention.every-input-counts",
    wrong="The last key is never attended where another is left.",
    effect="A sentence loses its last word.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    device = None if mask is None else mask.device
    early = torch.arange(keys, device=device) < max(1, keys - 1)
    kept = early.view(1, 1, 1, keys) if mask is None else mask & early
    only = ~kept.any(dim=-1, keepdim=True)
    return self.sound.head_mask(kept | only, batch, queries, keys)


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
    "multi_head_attention.merged-without-transpose",
    clause="multi_head_attention.query-order",
    origin="B028",
    wrong="Heads are merged by a reshape, without being transposed back.",
    effect="The vector of one position is made of pieces of others; copy tasks still train.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    return x.reshape(batch, length, heads * width)


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
    "multi_head_attention.always-causal",
    clause="multi_head_attention.key-order",
    origin="B022",
    wrong="A call without a mask is taken to be causal.",
    effect="The encoder reads to the left alone as soon as no sentence is padded.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool).tril()
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.heads-merged-with-batch",
    clause="multi_head_attention.batch-independence",
    wrong="Heads and samples, merged sample by sample, are taken apart head by head.",
    effect="Sentences get heads of each other; one sample or one head hides it.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    batch, heads, length, width = x.shape
    apart = x.reshape(heads, batch, length, width).transpose(0, 1)
    return self.sound.merge_heads(apart.contiguous())


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


@fault(
    "multi_head_attention.mask-dropped",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B022",
    wrong="The mask is lost on the way to the heads.",
    effect="Pads and the future are seen; without padding nothing shows.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return None


@fault(
    "multi_head_attention.mask-inverted",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B001, B002",
    wrong="True is taken to mean blocked where it means kept.",
    effect="Attention goes to padding and to the future alone.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else ~mask, batch, queries, keys)


@fault(
    "multi_head_attention.causal-in-place-of-mask",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B022",
    wrong="A causal triangle replaces the mask that was given, where it should join it.",
    effect="Causality holds, and padding is seen.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is not None:
        mask = torch.ones(1, 1, queries, keys, dtype=torch.bool, device=mask.device).tril()
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.padding-laid-along-queries",
    clause="multi_head_attention.masked-keys-ignored",
    origin="B011",
    wrong="A mask of keys is laid along the queries wherever both lengths are equal.",
    effect="Pads are still read, and the rows of pads see nothing.",
    choices={"fully_masked_row": "zero"},
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is not None and mask.shape[-2] == 1 and queries == keys:
        mask = mask.transpose(-1, -2)
    return self.sound.head_mask(mask, batch, queries, keys)


@fault(
    "multi_head_attention.mask-for-first-head",
    clause="multi_head_attention.one-mask-for-all-heads",
    wrong="A mask with one head in its head axis acts on the first head alone.",
    effect="All other heads see pads and the future, and the first covers up for them.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None or mask.shape[1] > 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, self.sizes.heads, queries, keys).clone()
    whole[:, 1:] = True
    return whole


@fault(
    "multi_head_attention.mask-not-for-last-head",
    clause="multi_head_attention.one-mask-for-all-heads",
    wrong="The mask is written out for one head too few; the last has none.",
    effect="One head of many sees pads and the future.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    heads = self.sizes.heads
    if mask is None or heads == 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    whole = mask.expand(batch, heads, queries, keys).clone()
    whole[:, -1] = True
    return whole


@fault(
    "multi_head_attention.mask-tiled-by-heads",
    clause="multi_head_attention.mask-per-sample",
    origin="B013",
    wrong="The mask is repeated head by head where samples and heads are merged sample by sample.",
    effect="The heads of one sentence use the padding of another; equal lengths hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    if mask is None or mask.shape[1] > 1:
        return self.sound.head_mask(mask, batch, queries, keys)
    heads = self.sizes.heads
    tiled = mask.expand(batch, 1, queries, keys).repeat(heads, 1, 1, 1)
    return tiled.reshape(batch, heads, queries, keys)


@fault(
    "multi_head_attention.mask-of-first-sample",
    clause="multi_head_attention.mask-per-sample",
    wrong="The mask of the first sample is used for all.",
    effect="Sentences are cut to the length of the first.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask[:1], batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-samples-joined",
    clause="multi_head_attention.mask-per-sample",
    wrong="A key is kept for all samples as soon as one sample keeps it.",
    effect="The longest sentence of a batch decides what all others see.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    joined = None if mask is None else mask.any(dim=0, keepdim=True)
    return self.sound.head_mask(joined, batch, queries, keys)


@fault(
    "multi_head_attention.mask-of-first-head",
    clause="multi_head_attention.mask-per-head",
    wrong="The mask of the first head is used for all heads.",
    effect="Masks per head have no effect; equal ones hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask[:, :1], batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-heads-backwards",
    clause="multi_head_attention.mask-per-head",
    wrong="Masks per head are dealt out from the last head to the first.",
    effect="Every head follows the mask of another; equal ones hide it.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    return self.sound.head_mask(None if mask is None else mask.flip(1), batch, queries, keys)


@fault(
    "multi_head_attention.masks-of-heads-joined",
    clause="multi_head_attention.mask-per-head",
    wrong="A key is kept for all heads as soon as one head keeps it.",
    effect="Masks per head hide nothing but what all of them hide.",
)
def head_mask(self: Seams, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
    joined = None if mask is None else mask.any(dim=1, keepdim=True)
    return self.sound.head_mask(joined, batch, queries, keys)


@fault(
    "multi_head_attention.width-rounded-down",
    clause="multi_head_attention.indivisible-width-refused",
    wrong="A width that the heads do not divide is rounded down.",
    effect="Columns are missing inside, and everything runs.",
)
def check_heads(self: Seams) -> None:
    return None


@fault(
    "multi_head_attention.width-asserted",
    clause="multi_head_attention.indivisible-width-refused",
    origin="A: asserts d % h == 0",
    wrong="An assertion without words guards the width.",
    effect="It says nothing of the two numbers, and nothing at all under python -O.",
)
def check_heads(self: Seams) -> None:
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise AssertionError


@fault(
    "multi_head_attention.width-refused-without-numbers",
    clause="multi_head_attention.indivisible-width-refused",
    wrong="The error says that the width is wrong, and neither width nor heads.",
    effect="A user has to find out which of many sizes is meant.",
)
def check_heads(self: Seams) -> None:
    if self.choices.head_width == "d/h" and self.sizes.d_model % self.sizes.heads:
        raise ValueError("The model width must be divisible by the number of heads.")


@fault(
    "multi_head_attention.value-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="The projected value is detached from the graph.",
    effect="The value projection stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.detach() if name == "value" else projected


@fault(
    "multi_head_attention.output-bias-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="The bias of the output projection is added outside of the graph.",
    effect="It stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "output":
        return projected
    bias = _bias(self, module, name, x)
    return projected - bias + bias.detach()


@fault(
    "multi_head_attention.query-and-key-detached",
    clause="multi_head_attention.every-parameter-reached",
    wrong="Where to look is computed without a graph.",
    effect="Values train; what attention attends to stays as it was born.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.detach() if name in ("query", "key") else projected


@fault(
    "multi_head_attention.key-gradient-halved",
    clause="multi_head_attention.gradient",
    wrong="The gradient of the projected keys is halved by a hand-written backward pass.",
    effect="Values are right, and training is another.",
    kind="gradient",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected / 2 + projected.detach() / 2 if name == "key" else projected


@fault(
    "multi_head_attention.first-head-trained",
    clause="multi_head_attention.gradient",
    wrong="The gradient flows through the first head alone.",
    effect="Every parameter gets a gradient, and most of it is missing.",
    kind="gradient",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    first = torch.arange(x.shape[1], device=x.device).view(1, -1, 1, 1) == 0
    return self.sound.merge_heads(torch.where(first, x, x.detach()))


@fault(
    "multi_head_attention.input-detached",
    clause="multi_head_attention.gradient",
    wrong="The key input is detached before it is projected.",
    effect="All parameters here train; what made the memory does not.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    return self.sound.multi_head_attention(module, query, key.detach(), value, mask)


@fault(
    "multi_head_attention.mask-straight-through",
    clause="multi_head_attention.gradient-to-masked-keys",
    wrong="The gradient is that of a call without the mask.",
    effect="Pads and the future are invisible and are trained through all the same.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    masked = self.sound.multi_head_attention(module, query, key, value, mask)
    free = self.sound.multi_head_attention(module, query, key, value, None)
    return masked.detach() + free - free.detach()


@fault(
    "multi_head_attention.norm-of-hidden-values",
    clause="multi_head_attention.gradient-to-masked-keys",
    wrong="Hidden values are zeroed, and the gradient of every value's length is taken along.",
    effect="Outputs are right; the slope of a length at zero is 0 / 0, and NaN spreads.",
    kind="gradient",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    if mask is not None:
        seen = mask.any(dim=2).any(dim=1)[..., None]
        value = value * seen
        length = value.pow(2).sum(dim=-1, keepdim=True).sqrt()
        value = value + length - length.detach()
    return self.sound.multi_head_attention(module, query, key, value, mask)


@fault(
    "multi_head_attention.projections-clipped",
    clause="multi_head_attention.large-scores",
    wrong="Projected queries and keys are clipped to 50, so that scores do not overflow.",
    effect="Fresh weights never get there; trained ones do, and lose what tells keys apart.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.clamp(-50.0, 50.0) if name in ("query", "key") else projected


@fault(
    "multi_head_attention.fill-ten-thousand",
    clause="multi_head_attention.large-scores",
    origin="B007",
    wrong="Masked scores are filled with -1e4, chosen to fit into float16.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    queries, keys, values = (
        self.split_heads(self.project(module, name, x))
        for name, x in (("query", query), ("key", key), ("value", value))
    )
    raw = self.scores(queries, keys, self.scale(queries.shape[-1], queries.shape[1]))
    if mask is not None:
        raw = raw.masked_fill(~mask, -1e4)
    context = self.mix(self.softmax(raw), values)
    return self.project(module, "output", self.merge_heads(context))


@fault(
    "multi_head_attention.float32-through-bfloat16",
    clause="multi_head_attention.float32",
    wrong="The projections of a float32 call run in bfloat16: automatic casting was left on.",
    effect="Two decimal digits are right where seven were asked for.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected.bfloat16().float() if x.dtype == torch.float32 else projected


@fault(
    "multi_head_attention.float32-through-half",
    clause="multi_head_attention.float32",
    wrong="The heads of a float32 call are merged in float16.",
    effect="Three decimal digits are right where seven were asked for.",
)
def merge_heads(self: Seams, x: Tensor) -> Tensor:
    merged = self.sound.merge_heads(x)
    return merged.half().float() if x.dtype == torch.float32 else merged


@fault(
    "multi_head_attention.float64-through-single",
    clause="multi_head_attention.formula",
    wrong="The projections of a float64 call run in float32.",
    effect="Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    return self.sound.project(module, name, x).float().to(x.dtype)


@fault(
    "multi_head_attention.half-returned-as-single",
    clause="multi_head_attention.half-precision",
    wrong="Half precision is widened for the sake of its digits and never narrowed again.",
    effect="The next layer raises, or computes in float32 at twice the cost.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    return output if output.dtype == torch.float64 else output.float()


@fault(
    "multi_head_attention.half-overflows",
    clause="multi_head_attention.half-precision",
    wrong="Projections are summed up unscaled, ten thousand times too large, and divided after.",
    effect="Above 65504 float16 is infinite; no other precision shows it.",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    return projected * 32768.0 / 32768.0


@fault(
    "multi_head_attention.dropout-in-evaluation",
    clause="multi_head_attention.deterministic",
    origin="B100",
    wrong="Dropout on the output does not know the mode.",
    effect="Evaluation is random, and a little worse than it could be.",
    kind="mode",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    rate = self.dropout_rate()
    return self.drop(output, rate) if rate > 0 else output


@fault(
    "multi_head_attention.keys-cached",
    clause="multi_head_attention.deterministic",
    wrong="The projected keys of a call are kept and attended by the next one that they fit.",
    effect="What a sentence gives depends on the one before it.",
    kind="state",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    projected = self.sound.project(module, name, x)
    if name != "key":
        return projected
    last = self.memory.get("key", projected)
    self.memory["key"] = projected.detach()
    return (projected + last) / 2 if last.shape == projected.shape else projected


@fault(
    "multi_head_attention.query-scaled-in-place",
    clause="multi_head_attention.deterministic",
    wrong="The query is scaled in place, in the caller's own tensor.",
    effect="A second call with the same query scales it again.",
    kind="state",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    output = self.sound.multi_head_attention(module, query, key, value, mask)
    with torch.no_grad():
        query.mul_(self.head_width() ** -0.5)
    return output


@fault(
    "multi_head_attention.layout-assumed",
    clause="multi_head_attention.strided-inputs",
    wrong="The memory of the key is read as if it were contiguous.",
    effect="Transposed views give other keys, without an error.",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    strides = torch.empty(key.shape, device="meta").stride()
    read = key.as_strided(key.shape, strides)
    return self.sound.multi_head_attention(module, query, read, value, mask)


@fault(
    "multi_head_attention.view-of-strided",
    clause="multi_head_attention.strided-inputs",
    wrong="Samples and positions are merged by a view, which transposed inputs do not allow.",
    effect="It raises for some inputs and not for others of the same shape.",
    kind="loud",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    if name == "output":
        return self.sound.project(module, name, x)
    return self.sound.project(module, name, x.view(-1, x.shape[-1]).view(x.shape))


@fault(
    "multi_head_attention.weights-renormalised-in-place",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Every call shrinks the output's weight in place to a largest row of length 1.",
    effect="What is saved is not what was loaded, and evaluating a model changes it.",
    kind="state",
)
def project(self: Seams, module: Node, name: str, x: Tensor) -> Tensor:
    if name == "output":
        with torch.no_grad():
            for values in module.output.parameters():
                values.div_(values.norm().clamp(min=1.0))
    return self.sound.project(module, name, x)


@fault(
    "multi_head_attention.query-and-key-one-matrix",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Query and key projections are one module.",
    effect="Whichever is loaded last is both, and they are trained as one.",
    specimens=("plain",),
    kind="state",
)
def make_multi_head_attention(self: Seams) -> Node:
    built = self.sound.make_multi_head_attention()
    built.how = self
    built.query = built.key
    return built


@fault(
    "multi_head_attention.weights-rounded-in-place",
    clause="multi_head_attention.parameters-round-trip",
    wrong="Every call rounds the weights themselves to float16, to save time.",
    effect="A model loses its digits by being used, and what is saved is not what was loaded.",
    kind="state",
)
def multi_head_attention(
    self: Seams, module: Node, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Tensor:
    with torch.no_grad():
        for values in module.parameters():
            values.copy_(values.half())
    return self.sound.multi_head_attention(module, query, key, value, mask)
