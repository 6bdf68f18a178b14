"""Faults of the chapter `attention`: each function overrides the seam that it is named after."""

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
    "attention.softmax-base-two",
    clause="attention.weights-formula",
    wrong="The softmax takes powers of 2, not of e.",
    effect="Attention is flatter by a factor of 0.69 in the scores.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores * math.log(2.0))


@fault(
    "attention.softmax-temperature",
    clause="attention.weights-formula",
    wrong="A temperature of 1.01 is left in the softmax.",
    effect="Weights are one percent too flat in the scores: no loss curve shows it.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores / 1.01)


@fault(
    "attention.scores-returned",
    clause="attention.weights-formula",
    wrong="The masked scores are returned in the place of the weights.",
    effect="The output is right; plots of attention show numbers of any size.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return raw


@fault(
    "attention.output-squeezed",
    clause="attention.shapes",
    origin="B036",
    wrong="The output is squeezed without naming an axis.",
    effect="One sample, one head or one query drops an axis, at inference alone.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights, value).squeeze()


@fault(
    "attention.output-single-precision",
    clause="attention.shapes",
    wrong="The output is returned in float32 whatever came in.",
    effect="What follows computes in another precision, or raises for mixed ones.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights, value).float()


@fault(
    "attention.weights-without-head-axis",
    clause="attention.shapes",
    origin="D",
    wrong="The weights are averaged over the heads before they are returned.",
    effect="A caller that reads weights by head reads another axis.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.mean(dim=1)


@fault(
    "attention.masked-after-softmax",
    clause="attention.rows-sum-to-one",
    origin="B006",
    wrong="Masked weights are set to zero after the softmax, and the rest not divided again.",
    effect="Rows sum to less than 1; the more padding, the smaller the output.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    _, weights = self.sound.attention(module, query, key, value, None)
    kept = weights if mask is None else weights * mask
    return self.sound.mix(kept, value), kept


@fault(
    "attention.softmax-over-queries",
    clause="attention.rows-sum-to-one",
    origin="B026",
    wrong="The softmax runs over the queries, not over the keys.",
    effect="Columns sum to 1, and under a causal mask the future leaks into the past.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-2).nan_to_num(0.0)


@fault(
    "attention.softmax-over-heads",
    clause="attention.rows-sum-to-one",
    origin="B026",
    wrong="The softmax runs over axis 1, written for three axes and kept for four: the heads.",
    effect="Heads compete for a key, and no row sums to 1.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.softmax(scores, dim=1).nan_to_num(0.0)


@fault(
    "attention.weights-logarithms",
    clause="attention.weights-nonnegative",
    wrong="The logarithms of the weights are returned.",
    effect="The output is right; every weight that is read is negative.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.clamp(min=1e-30).log()


@fault(
    "attention.softmax-without-exponential",
    clause="attention.weights-nonnegative",
    wrong="Scores are divided by their sum; the exponential is left out.",
    effect="Rows sum to 1 with negative weights among them, and explode where the sum is near 0.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    finite = scores.masked_fill(scores == -math.inf, 0.0)
    return finite / finite.sum(dim=-1, keepdim=True)


@fault(
    "attention.fill-nearly-zero",
    clause="attention.masked-weights-zero",
    origin="B005",
    wrong="The fill is -1e-9, an exponent with the wrong sign, where -1e9 was meant.",
    effect="A masked key weighs as much as any key with the score 0.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e-9)


@fault(
    "attention.mask-added-as-ones",
    clause="attention.masked-weights-zero",
    origin="B003",
    wrong="A mask of zeros and ones is added to the scores.",
    effect="Nothing is masked; kept keys gain 1 in their score.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw + mask


@fault(
    "attention.mask-multiplied",
    clause="attention.masked-weights-zero",
    origin="B006",
    wrong="Scores are multiplied by a mask of zeros and ones before the softmax.",
    effect="A masked key has the score 0, which is no small score.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw * mask


@fault(
    "attention.mask-inverted",
    clause="attention.masked-keys-ignored",
    origin="B001, B002",
    wrong="True is taken to mean blocked where it means kept.",
    effect="Attention goes to padding and to the future alone.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else ~mask)


@fault(
    "attention.mask-forgotten",
    clause="attention.masked-keys-ignored",
    origin="C: masked self-attention never adds its mask",
    wrong="The mask is accepted and never used.",
    effect="Pads and the future are seen; without padding nothing shows.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw


@fault(
    "attention.causal-in-place-of-mask",
    clause="attention.masked-keys-ignored",
    origin="B022",
    wrong="A causal triangle replaces the mask that was given, where it should join it.",
    effect="Causality holds, and padding is seen.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return raw
    return self.sound.mask_scores(raw, torch.ones_like(raw, dtype=torch.bool).tril())


@fault(
    "attention.fill-minus-infinity-times-zero",
    clause="attention.masked-keys-ignored",
    origin="B008",
    wrong="The additive mask is (1 - mask) * -inf, and 0 * -inf is not a number.",
    effect="Every kept key becomes NaN, and with it every output.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw + (1.0 - mask.to(raw.dtype)) * -math.inf


@fault(
    "attention.fill-plus-infinity",
    clause="attention.masked-keys-ignored",
    origin="C: the mask is plus infinity",
    wrong="Plus infinity is added to masked scores.",
    effect="Every row with a masked key becomes NaN.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, math.inf)


@fault(
    "attention.fill-ten-thousand",
    clause="attention.masking-exact",
    origin="B007",
    wrong="The fill is -1e4, chosen to fit into float16.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e4)


@fault(
    "attention.fill-hundred-thousand",
    clause="attention.masking-exact",
    origin="B007",
    wrong="The fill is -1e5.",
    effect="Once trained scores fall below it, a masked key wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e5)


@fault(
    "attention.fill-added",
    clause="attention.masking-exact",
    wrong="-1e4 is added to masked scores, which keep their own size.",
    effect="A masked key that fits better by more than that wins the softmax.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw - 1e4 * (~mask).to(raw.dtype)


@fault(
    "attention.fill-other-than-declared",
    clause="attention.masking-exact",
    origin="own",
    wrong="A fill of -1e4 is declared, and masking is exact.",
    effect="The declaration is wrong: a comparison by it misleads.",
    choices={"mask_fill": -1e4},
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -math.inf)


@fault(
    "attention.empty-row-nan",
    clause="attention.fully-masked-row",
    origin="B009",
    wrong="A row without a key is a softmax over minus infinities, where zeros are declared.",
    effect="NaN, and through 0 * NaN in the backward pass it reaches every weight.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), math.nan)


@fault(
    "attention.empty-row-mean",
    clause="attention.fully-masked-row",
    origin="B010",
    wrong="A row without a key is a softmax over equal fills, where zeros are declared.",
    effect="The mean of all values, pads included: plausible, and changing with the padding.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    return weights.masked_fill(~mask.any(dim=-1, keepdim=True), 1.0 / weights.shape[-1])


@fault(
    "attention.empty-row-spoils-others",
    clause="attention.fully-masked-row",
    wrong="One row without a key turns the whole sample into zeros.",
    effect="A single wholly padded query silences its sentence.",
    choices={"fully_masked_row": "zero"},
)
def empty_rows(self: Seams, weights: Tensor, mask: Mask) -> Tensor:
    if mask is None:
        return weights
    spoiled = ~mask.any(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    return weights.masked_fill(spoiled, 0.0)


@fault(
    "attention.weights-not-divided",
    clause="attention.convex-hull",
    wrong="Exponentials are not divided by their sum.",
    effect="Outputs are sums of values, up to as many times too large as there are keys.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return torch.exp(scores - scores.amax(dim=-1, keepdim=True))


@fault(
    "attention.dropout-scale-kept",
    clause="attention.convex-hull",
    wrong="The factor 1 / (1 - p) of dropout is applied in evaluation mode as well.",
    effect="Outputs are a tenth too large.",
)
def drop_weights(self: Seams, module: nn.Module, weights: Tensor) -> Tensor:
    return weights / 0.9


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
    "attention.mask-tiled-by-heads",
    clause="attention.batch-independence",
    origin="B013",
    wrong="The mask is repeated head by head where samples and heads are merged sample by sample.",
    effect="The heads of one sentence use the padding of another; equal lengths hide it.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None or mask.shape[1] > 1:
        return self.sound.mask_scores(raw, mask)
    whole = mask.expand(raw.shape[0], 1, *raw.shape[-2:])
    return self.sound.mask_scores(raw, whole.repeat(raw.shape[1], 1, 1, 1).reshape(raw.shape))


@fault(
    "attention.mask-of-first-sample",
    clause="attention.batch-independence",
    wrong="The mask of the first sample is used for all.",
    effect="Sentences are cut to the length of the first.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:1])


@fault(
    "attention.softmax-overflows",
    clause="attention.stable-for-large-scores",
    wrong="The softmax does not take out the largest score.",
    effect="Infinity over infinity as soon as a score passes 709 (88 in float32).",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.softmax-maximum-of-batch",
    clause="attention.stable-for-large-scores",
    wrong="The largest score of the whole batch is taken out, not that of each row.",
    effect="Rows of small scores underflow and become zero over zero.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.scores-clamped",
    clause="attention.stable-for-large-scores",
    wrong="Scores are clamped to 50 so that their exponentials do not overflow.",
    effect="Finite everywhere, and all large scores weigh the same.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query, key, factor).clamp(-50.0, 50.0)


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


@fault(
    "attention.padding-laid-along-queries",
    clause="attention.mask-shapes",
    origin="B011",
    wrong="A mask of keys is laid along the queries wherever both lengths are equal.",
    effect="Pads are still read, and the rows of pads see nothing.",
    choices={"fully_masked_row": "zero"},
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is None or mask.shape[-2] > 1 or raw.shape[-2] != raw.shape[-1]:
        return self.sound.mask_scores(raw, mask)
    return self.sound.mask_scores(raw, mask.transpose(-1, -2))


@fault(
    "attention.mask-of-first-query",
    clause="attention.mask-shapes",
    wrong="The mask of the first query is used for all: it is taken for a mask of padding.",
    effect="Under a causal mask every query sees the first key alone.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:, :, :1])


@fault(
    "attention.mask-of-first-head",
    clause="attention.mask-shapes",
    wrong="The mask of the first head is used for all heads.",
    effect="Masks per head have no effect; all other shapes hide it.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return self.sound.mask_scores(raw, None if mask is None else mask[:, :1])


@fault(
    "attention.zero-key-added",
    clause="attention.one-key",
    origin="D: add_zero_attn",
    wrong="A key of zeros with a value of zeros is added to every sentence.",
    effect="Part of every weight goes to a key that nobody passed.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    with_zero = torch.cat([scores, torch.zeros_like(scores[..., :1])], dim=-1)
    return self.sound.softmax(with_zero)[..., :-1]


@fault(
    "attention.epsilon-in-softmax",
    clause="attention.one-key",
    wrong="1e-6 is added to the sum that the exponentials are divided by.",
    effect="Weights are a millionth too small; a single key does not give its value.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-6)


@fault(
    "attention.layout-assumed",
    clause="attention.strided-inputs",
    wrong="The memory of the keys is read as if it were contiguous.",
    effect="Transposed views give other keys, without an error.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    strides = torch.empty(key.shape, device="meta").stride()
    return self.sound.scores(query, key.as_strided(key.shape, strides), factor)


@fault(
    "attention.view-of-strided",
    clause="attention.strided-inputs",
    wrong="Samples and heads are merged by a view, which transposed inputs do not allow.",
    effect="It raises for some inputs and not for others of the same shape.",
    kind="loud",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    batch, heads, keys, width = value.shape
    return self.sound.mix(weights, value.view(batch * heads * keys * width).view(value.shape))


@fault(
    "attention.weights-detached",
    clause="attention.gradient",
    wrong="The weights are detached from the graph before they are used.",
    effect="Values train; queries and keys stay as they were born.",
    kind="gradient",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    return self.sound.mix(weights.detach(), value)


@fault(
    "attention.query-detached",
    clause="attention.gradient",
    wrong="The query is detached from the graph.",
    effect="The query projection is never trained.",
    kind="gradient",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    return self.sound.scores(query.detach(), key, factor)


@fault(
    "attention.softmax-backward-incomplete",
    clause="attention.gradient",
    wrong="The hand-written backward pass of the softmax leaves out the sum over the row.",
    effect="Values are right and gradients point elsewhere.",
    kind="gradient",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    weights = self.sound.softmax(scores).detach()
    hidden = scores == -math.inf
    shown = scores.masked_fill(hidden, 0.0)
    return weights * (1.0 + shown - shown.detach())


@fault(
    "attention.straight-through-mask",
    clause="attention.gradient-to-masked-keys",
    wrong="The gradient is that of the weights before the mask.",
    effect="Pads and the future are invisible and are trained through all the same.",
    kind="gradient",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    _, masked = self.sound.attention(module, query, key, value, mask)
    _, free = self.sound.attention(module, query, key, value, None)
    weights = masked.detach() + (free - free.detach())
    return self.sound.mix(weights, value), weights


@fault(
    "attention.fill-minus-thirty",
    clause="attention.gradient-to-masked-keys",
    wrong="The fill is -30, which looks like never and is one in ten trillion.",
    effect="What is masked is still seen and trained, a little.",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -30.0)


@fault(
    "attention.logarithm-of-zero-weights",
    clause="attention.gradient-finite",
    wrong="Weights are kept as logarithms and raised again before they are used.",
    effect="Values are right; at every masked key the gradient is zero times infinity.",
    kind="gradient",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores).log().exp()


@fault(
    "attention.overflow-behind-mask",
    clause="attention.gradient-finite",
    wrong="Exponentials of masked scores are computed and thrown away after they overflowed.",
    effect="Values are right; the gradient is zero times infinity once a masked key fits best.",
    kind="gradient",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    if mask is None:
        return self.sound.attention(module, query, key, value, mask)
    raw = self.sound.scores(query, key, self.sound.scale(query.shape[-1], query.shape[1]))
    peak = raw.masked_fill(~mask, -math.inf).amax(dim=-1, keepdim=True)
    powers = torch.where(mask, torch.exp(raw - peak), 0.0)
    weights = powers / powers.sum(dim=-1, keepdim=True)
    return self.sound.mix(weights, value), weights


@fault(
    "attention.fill-beyond-half",
    clause="attention.half-precision",
    origin="B124",
    wrong="The fill is -1e9, which cannot be written into float16.",
    effect="It raises in float16, and in no other precision.",
    kind="loud",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    return raw if mask is None else raw.masked_fill(~mask, -1e9)


@fault(
    "attention.half-not-cast-back",
    clause="attention.half-precision",
    wrong="A call in half precision is computed in float32 and does not come back.",
    effect="What follows meets two precisions: it raises, or runs at twice the memory.",
)
def mix(self: Seams, weights: Tensor, value: Tensor) -> Tensor:
    half = value.dtype in (torch.float16, torch.bfloat16)
    return self.sound.mix(weights.float(), value.float()) if half else weights @ value


@fault(
    "attention.softmax-overflows-in-half",
    clause="attention.half-precision",
    wrong="The largest score is not taken out in float16, where exponentials end at 11.",
    effect="Infinity over infinity, at scores that are harmless in any other precision.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    if scores.dtype != torch.float16:
        return self.sound.softmax(scores)
    powers = torch.exp(scores)
    return powers / powers.sum(dim=-1, keepdim=True)


@fault(
    "attention.float32-through-half",
    clause="attention.float32",
    wrong="Products of a float32 call keep ten binary digits, as some fast modes do.",
    effect="Three decimal digits are right where seven were asked for.",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    if query.dtype != torch.float32:
        return self.sound.scores(query, key, factor)
    return self.sound.scores(query.half().float(), key.half().float(), factor)


@fault(
    "attention.softmax-in-half",
    clause="attention.float32",
    wrong="The softmax of a float32 call runs in float16.",
    effect="Weights have three digits, and those below 6e-8 are gone.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    if scores.dtype != torch.float32:
        return self.sound.softmax(scores)
    return self.sound.softmax(scores.half()).float()


@fault(
    "attention.softmax-in-single",
    clause="attention.weights-formula",
    wrong="The softmax of a float64 call runs in float32.",
    effect="Half of the digits are gone, and no test with a tolerance of 1e-5 sees it.",
)
def softmax(self: Seams, scores: Tensor) -> Tensor:
    return self.sound.softmax(scores.float()).to(scores.dtype)


@fault(
    "attention.unmasked-weights-returned",
    clause="attention.weights-used",
    wrong="The weights that are returned are those before the mask.",
    effect="The output is right; a plot shows attention to pads and to the future.",
)
def attention(
    self: Seams, module: nn.Module, query: Tensor, key: Tensor, value: Tensor, mask: Mask = None
) -> Answer:
    output, _ = self.sound.attention(module, query, key, value, mask)
    return output, self.sound.attention(module, query, key, value, None)[1]


@fault(
    "attention.mean-weights-returned",
    clause="attention.weights-used",
    wrong="Every head returns the mean weights of all heads.",
    effect="The output is right; all heads look alike in a plot.",
)
def returned_weights(self: Seams, raw: Tensor, weights: Tensor, used: Tensor) -> Tensor:
    return used.mean(dim=1, keepdim=True).expand_as(used)


@fault(
    "attention.dropout-in-evaluation",
    clause="attention.deterministic",
    origin="B100",
    wrong="Dropout on the weights does not know the mode.",
    effect="Evaluation is random, and a little worse than it could be.",
    kind="mode",
)
def drop_weights(self: Seams, module: nn.Module, weights: Tensor) -> Tensor:
    rate = self.dropout_rate()
    return self.sound.drop(weights, rate) if rate > 0 else weights


@fault(
    "attention.query-scaled-in-place",
    clause="attention.deterministic",
    wrong="The query is scaled in place, in the caller's own tensor.",
    effect="A second call with the same query scales it again.",
    kind="state",
)
def scores(self: Seams, query: Tensor, key: Tensor, factor: float) -> Tensor:
    with torch.no_grad():
        query.mul_(factor)
    return self.sound.scores(query, key, 1.0)


@fault(
    "attention.mask-remembered",
    clause="attention.deterministic",
    wrong="A call without a mask uses the mask of the call before, where it fits.",
    effect="What a sentence gives depends on the one before it.",
    kind="state",
)
def mask_scores(self: Seams, raw: Tensor, mask: Mask) -> Tensor:
    if mask is not None:
        self.memory["mask"] = mask
    last: Mask = self.memory.get("mask")
    fits = last is not None and last.shape[-1] == raw.shape[-1] and last.shape[-2] == 1
    return self.sound.mask_scores(raw, last if mask is None and fits else mask)
