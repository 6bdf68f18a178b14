"""The reference model `fused`: packed and transposed weights, einsum, additive masks."""

import math
from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor, nn

from attentest.faults.reference_models.attending import FusedAttending
from attentest.faults.reference_models.batches import FusedBatch
from attentest.faults.reference_models.caches import FusedCache
from attentest.faults.reference_models.experts import FusedExperts
from attentest.faults.reference_models.fused_parameters import PACKED, TABLES
from attentest.faults.reference_models.hooks import Hooks, Mask
from attentest.faults.reference_models.language_models import FusedLanguageModel
from attentest.faults.reference_models.losses import FusedLoss
from attentest.faults.reference_models.modules import Node
from attentest.faults.reference_models.norms import FusedRms
from attentest.faults.reference_models.optimisers import FusedOptimiser
from attentest.faults.reference_models.rotary import FusedRotary
from attentest.faults.reference_models.schedules import FusedSchedule
from attentest_spec import Table
from attentest_spec.parameters import learned_positions, projection_biases


class Fused(
    FusedBatch,
    FusedLoss,
    FusedSchedule,
    FusedOptimiser,
    FusedCache,
    FusedRms,
    FusedExperts,
    FusedRotary,
    FusedAttending,
    FusedLanguageModel,
    Hooks,
):
    """In few large steps, the way a fast implementation does it."""

    name = "fused"
    tables: ClassVar[Mapping[str, Table]] = TABLES

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Set numbers to zero with probability `rate` and scale the others up."""
        kept = torch.rand(x.shape, device=x.device) >= rate
        return torch.where(kept, x / (1.0 - rate), torch.zeros_like(x))

    def initialise(self, weight: Tensor) -> None:
        """Fill a weight of two dimensions with its first random values, in place."""
        nn.init.normal_(weight, std=(2.0 / sum(weight.shape)) ** 0.5)

    def make_linear(self, inputs: int, outputs: int, *, bias: bool = True) -> Node:
        """Build an initialised linear map, stored as (in, out)."""
        matrix = nn.Parameter(torch.empty(inputs, outputs))
        self.initialise(matrix)
        offset = nn.Parameter(torch.zeros(outputs)) if bias else None
        return Node(self, "linear", matrix=matrix, offset=offset)

    def linear(self, layer: Node, x: Tensor) -> Tensor:
        """Apply a linear map made by :meth:`make_linear`."""
        product = torch.einsum("...i,io->...o", x, layer.matrix)
        return product if layer.offset is None else product + layer.offset

    def padding_mask(self, tokens: Tensor, pad: int) -> Tensor:
        """Return (B, 1, 1, S) for tokens (B, S): every key that is a real token."""
        hidden = tokens.eq(pad).unsqueeze(1).unsqueeze(1)
        return hidden.logical_not()

    def causal_mask(self, length: int, device: torch.device | None = None) -> Tensor:
        """Return (1, 1, T, T): every key that does not come after its query."""
        place = torch.arange(length, device=device)
        return place.view(1, 1, length, 1) >= place.view(1, 1, 1, length)

    def scores(self, query: Tensor, key: Tensor, factor: float) -> Tensor:
        """Return the products (B, H, Q, K) of queries and keys, times `factor`."""
        return torch.einsum("bhqe,bhke->bhqk", query * factor, key)

    def mask_scores(self, raw: Tensor, mask: Mask) -> Tensor:
        """Return the scores with those of masked keys filled in."""
        if mask is None:
            return raw
        # A row without a key is treated as if it had all of them, and rewritten afterwards.
        hidden = mask.logical_not() & mask.any(dim=-1, keepdim=True)
        if self.choices.mask_fill == "exact":
            return raw + torch.zeros_like(raw).masked_fill(hidden, -math.inf)
        fill = max(float(self.choices.mask_fill), torch.finfo(raw.dtype).min)
        return torch.where(hidden, torch.full_like(raw, fill), raw)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return weights that are positive and sum to 1 over the keys."""
        powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True).detach())
        return powers / powers.sum(dim=-1, keepdim=True)

    def empty_rows(self, weights: Tensor, mask: Mask) -> Tensor:
        """Return the weights with the rows that keep no key as declared, 0 by default."""
        if mask is None:
            return weights
        options = {"uniform": 1.0 / weights.shape[-1], "nan": math.nan}
        rows = torch.full_like(weights, options.get(self.choices.fully_masked_row, 0.0))
        return torch.where(mask.any(dim=-1, keepdim=True), weights, rows)

    def mix(self, weights: Tensor, value: Tensor) -> Tensor:
        """Return the mean of the values under the weights."""
        return torch.einsum("bhqk,bhkg->bhqg", weights, value)

    def make_multi_head_attention(self) -> Node:
        """Build the packed projections of query, key and value, and the output's."""
        self.check_sizes("d_model", "heads")
        self.check_heads()
        biased = projection_biases(self.choices)
        width, inner = self.sizes.d_model, self.head_width() * self.sizes.heads
        rows = self.packed_rows()
        packed = nn.Parameter(torch.empty(sum(rows), width))
        with torch.no_grad():
            for part in torch.split(packed, rows):
                self.initialise(part)
        return Node(
            self,
            "multi_head_attention",
            packed_weight=packed,
            output=self.make_linear(inner, width, bias="output" in biased),
            **{
                f"{one}_bias": nn.Parameter(torch.zeros(size)) if one in biased else None
                for one, size in zip(PACKED, rows, strict=True)
            },
            **self.placing_parts(),
        )

    def project(self, module: Node, name: str, x: Tensor) -> Tensor:
        """Apply the projection `name`: query, key, value or output."""
        if name == "output":
            return self.linear(module.output, x)
        number = PACKED.index(name)
        weight = torch.split(module.packed_weight, self.packed_rows())[number]
        product = torch.einsum("bld,id->bli", x, weight)
        bias: Tensor | None = getattr(module, f"{name}_bias")
        return product if bias is None else product + bias

    def packed_rows(self) -> list[int]:
        """Return the rows of query, key and value in the packed weight."""
        shared = self.key_heads()
        return [self.head_width() * heads for heads in (self.sizes.heads, shared, shared)]

    def split_heads(self, x: Tensor) -> Tensor:
        """Return (B, L, H * E) as (B, H, L, E)."""
        batch, length, _ = x.shape
        return x.reshape(batch, length, -1, self.head_width()).permute(0, 2, 1, 3)

    def repeat_heads(self, x: Tensor, times: int) -> Tensor:
        """Return x (B, G, K, E) with every head `times` times in a row."""
        batch, groups, length, width = x.shape
        spread = x[:, :, None].expand(batch, groups, times, length, width)
        return spread.reshape(batch, groups * times, length, width)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Return (B, H, L, E) as (B, L, H * E)."""
        return x.permute(0, 2, 1, 3).flatten(2)

    def head_mask(self, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
        """Return the mask written out for every sample and head, (B, H, Q, K)."""
        return None if mask is None else mask.expand(batch, self.sizes.heads, queries, keys)

    def make_embedding(self, vocabulary: int) -> Node:
        """Build a table of `vocabulary` rows."""
        self.check_sizes("d_model", "source_vocabulary", "target_vocabulary")
        table = nn.Parameter(torch.empty(vocabulary, self.sizes.d_model))
        self.initialise(table)
        return Node(self, "embedding", table=table)

    def vocabulary_of(self, module: Node) -> int:
        """Return the number of rows of the table."""
        return int(module.table.size(0))

    def lookup(self, module: Node, tokens: Tensor) -> Tensor:
        """Return the row of every token."""
        rows: Tensor = module.table.index_select(0, tokens.flatten())
        return rows.reshape(*tokens.shape, rows.shape[-1])

    def make_positions(self) -> Node:
        """Build the positional encoding; only a learned table is kept."""
        self.check_sizes("d_model", "max_length")
        if not learned_positions(self.choices):
            return Node(self, "positional_encoding")
        length = self.first_position() + self.sizes.max_length
        rows = nn.Parameter(torch.empty(length, self.sizes.d_model))
        self.initialise(rows)
        return Node(self, "positional_encoding", rows=rows)

    def hold_table(self, module: Node, table: Tensor) -> None:
        """Do nothing: the table is made again in every call."""

    def position_rows(self, module: Node, length: int, device: torch.device | None) -> Tensor:
        """Return the rows (S, D) of the first `length` positions; the formula has no end."""
        if not learned_positions(self.choices):
            return self.position_table(length, self.sizes.d_model, device)
        first = self.first_position()
        self.check_length(length, module.rows.size(0) - first)
        return self.scale_rows(module.rows.narrow(0, first, length))

    def frequencies(self, d_model: int, device: torch.device | None) -> Tensor:
        """Return the angle between neighbouring positions for every pair of columns."""
        return torch.exp(self.exponents(d_model, device) * -math.log(10000.0))

    def arrange(self, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
        """Put sines and cosines (S, pairs) into the columns (S, D), in turn or in halves."""
        if self.choices.positional_encoding.startswith("halves"):
            columns = torch.cat((sines, cosines[:, : d_model // 2]), dim=-1)
            return nn.functional.pad(columns, (0, d_model - columns.shape[1]))
        return torch.stack((sines, cosines), dim=-1).flatten(1)[:, :d_model]

    def make_norm(self) -> Node:
        """Build a norm with a weight (gamma) of 1 and a bias of 0."""
        self.check_sizes("d_model")
        width = self.sizes.d_model
        if self.choices.norm_variance == "unbiased" and width < 2:
            raise ValueError(f"A width of {width} is too small for an unbiased variance.")
        scale, shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        biased = self.choices.norm_bias == "present"
        return Node(self, "layer_norm", scale=scale, shift=shift if biased else None)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the columns, as (.., 1)."""
        return x.sum(dim=-1, keepdim=True) / x.shape[-1]

    def variance(self, centred: Tensor) -> Tensor:
        """Return the mean of the squared deviations, as (.., 1)."""
        correction = 1 if self.choices.norm_variance == "unbiased" else 0
        return torch.var_mean(centred, dim=-1, correction=correction, keepdim=True)[0]

    def normalise(self, centred: Tensor, variance: Tensor) -> Tensor:
        """Return the deviations times the inverse of their size."""
        if self.choices.norm_epsilon_place == "inside-root":
            return centred * torch.rsqrt(variance + self.epsilon())
        return centred * torch.reciprocal(self.root(variance) + self.epsilon())

    def affine(self, module: Node, normalised: Tensor) -> Tensor:
        """Multiply by the weight (gamma) and add the bias."""
        scale: Tensor = module.scale.to(normalised)
        if module.shift is None:
            return normalised * scale
        return torch.addcmul(module.shift.to(normalised), scale, normalised)

    def activation(self, x: Tensor) -> Tensor:
        """Apply the chosen activation."""
        match self.choices.activation:
            case "gelu":
                return 0.5 * x * torch.erfc(x * -(0.5**0.5))
            case "gelu-tanh":
                return x * torch.sigmoid(x * (1.0 + 0.044715 * x * x) * (8.0 / torch.pi) ** 0.5)
            case "gelu-sigmoid":
                return x * torch.sigmoid(1.702 * x)
            case "silu":
                return x * torch.sigmoid(x)
            case "sigmoid":
                return (1.0 + torch.tanh(0.5 * x)) * 0.5
            case "relu-squared":
                return x * x.clamp(min=0)
            case _:
                return x.clamp(min=0)

    def make_generator(self) -> Node:
        """Build the linear map to the target vocabulary."""
        self.check_sizes("d_model", "target_vocabulary")
        table = nn.Parameter(torch.empty(self.sizes.target_vocabulary, self.sizes.d_model))
        self.initialise(table)
        offset = nn.Parameter(torch.zeros(self.sizes.target_vocabulary))
        biased = self.choices.generator_bias == "present"
        return Node(self, "generator", table=table, offset=offset if biased else None)

    def generator_logits(self, module: Node, x: Tensor) -> Tensor:
        """Apply the linear map."""
        logits: Tensor = torch.einsum("btd,vd->btv", x, module.table)
        return logits if module.offset is None else logits + module.offset

    def generator_output(self, logits: Tensor) -> Tensor:
        """Return probabilities, their logarithms, or the logits, as chosen."""
        if self.choices.output == "logits":
            return logits
        logarithms = logits - torch.logsumexp(logits, dim=-1, keepdim=True)
        return logarithms.exp() if self.choices.output == "probabilities" else logarithms

    def share_matrix(self, part: Node, other: Node) -> None:
        """Give `part` the vocabulary matrix of `other`."""
        part.table = other.table

    def last_real(self, output: Tensor, tokens: Tensor) -> Tensor:
        """Return the scores (B, V) at the last token that is no padding."""
        after = (tokens != self.sizes.target_pad).flip(1).long().cumsum(dim=1).flip(1)
        last = (after > 0).sum(dim=1) - 1
        return output.gather(1, last[:, None, None].expand(-1, 1, output.shape[-1])).squeeze(1)

    def append(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """Return tokens (.., T) with one more column, `chosen` (..)."""
        longer = tokens.new_empty(*tokens.shape[:-1], tokens.shape[-1] + 1)
        longer[..., :-1] = tokens
        longer[..., -1] = chosen
        return longer

    def choose(self, following: Tensor) -> Tensor:
        """Return the best tokens (B) by their scores (B, V)."""
        return following.max(dim=-1).indices

    def fill_ended(self, chosen: Tensor, ended: Tensor) -> Tensor:
        """Return the chosen tokens (B), the filling where a sequence has ended."""
        return chosen * ~ended + self.fill_id() * ended

    def spread_memory(self, memory: Tensor, beams: int) -> Tensor:
        """Return the memory (B * N, S, D) of every beam, for that (B, S, D) of every sequence."""
        return memory[:, None].expand(-1, beams, -1, -1).flatten(0, 1)

    def logarithms(self, following: Tensor) -> Tensor:
        """Return the log-probabilities that the model's scores are, as declared."""
        if self.choices.output == "logits":
            return following - torch.logsumexp(following, dim=-1, keepdim=True)
        return following.log() if self.choices.output == "probabilities" else following

    def pick(self, values: Tensor, count: int) -> Tensor:
        """Return the places (B, count) of the greatest of the values (B, N * V), in order."""
        return values.argsort(dim=1, descending=True)[:, :count]

    def reorder(self, values: Tensor, origin: Tensor) -> Tensor:
        """Return values (B, N, ..) of the beams that `origin` (B, N) names."""
        first = torch.arange(len(origin), device=origin.device)[:, None] * values.shape[1]
        chosen = values.flatten(0, 1).index_select(0, (origin + first).flatten())
        return chosen.view(*origin.shape, *values.shape[2:])

    def keep_top_k(self, logits: Tensor, count: int) -> Tensor:
        """Return the logits (B, V) with minus infinity below the `count` greatest."""
        least = logits.sort(dim=-1).values[:, -count].unsqueeze(-1)
        return torch.where(logits >= least, logits, -math.inf)

    def keep_top_p(self, logits: Tensor, whole: Tensor, share: float) -> Tensor:
        """Return the logits (B, V), minus infinity outside of the nucleus of `whole` (B, V)."""
        if share >= 1:
            return logits
        probabilities = torch.softmax(whole, dim=-1)
        greater = probabilities[:, None, :] > probabilities[:, :, None]
        before = (greater * probabilities[:, None, :]).sum(dim=-1)
        best = probabilities == probabilities.amax(dim=-1, keepdim=True)
        return torch.where((before < share) | best, logits, -math.inf)
