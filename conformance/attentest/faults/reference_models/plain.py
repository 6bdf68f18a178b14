"""The reference model `plain`: one module per map, four axes, boolean masks, a table built once."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.reference_models.attending import PlainAttending
from attentest.faults.reference_models.batches import PlainBatch
from attentest.faults.reference_models.caches import PlainCache
from attentest.faults.reference_models.experts import PlainExperts
from attentest.faults.reference_models.hooks import Hooks, Mask
from attentest.faults.reference_models.language_models import PlainLanguageModel
from attentest.faults.reference_models.losses import PlainLoss
from attentest.faults.reference_models.modules import Node
from attentest.faults.reference_models.norms import PlainRms
from attentest.faults.reference_models.optimisers import PlainOptimiser
from attentest.faults.reference_models.rotary import PlainRotary
from attentest.faults.reference_models.schedules import PlainSchedule
from attentest_spec import Table
from attentest_spec.parameters import learned_positions, projection_biases

_LAYER = {
    "self_attention": "self_attention",
    "self_attention_norm": "self_attention_norm",
    "cross_attention": "cross_attention",
    "cross_attention_norm": "cross_attention_norm",
    "feed_forward": "feed_forward",
    "feed_forward_norm": "feed_forward_norm",
}
_STACK = {"layers": "layers", "norm": "norm"}
_BLOCK = {
    **{name: name for name in ("self_attention", "feed_forward")},
    **{f"{name}_norm": f"{name}_norm" for name in ("self_attention", "feed_forward")},
    **{f"{name}_branch_norm": f"{name}_branch_norm" for name in ("self_attention", "feed_forward")},
}
ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "gelu-tanh": partial(functional.gelu, approximate="tanh"),
    "gelu-sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "relu-squared": lambda x: functional.relu(x).pow(2),
}


class Plain(
    PlainBatch,
    PlainLoss,
    PlainSchedule,
    PlainOptimiser,
    PlainCache,
    PlainRms,
    PlainExperts,
    PlainRotary,
    PlainAttending,
    PlainLanguageModel,
    Hooks,
):
    """Step by step, the way a tutorial does it."""

    name = "plain"
    tables: ClassVar[Mapping[str, Table]] = {
        "multi_head_attention": {
            "query": "query",
            "key": "key",
            "value": "value",
            "output": "output",
            "query_norm": "query_norm",
            "key_norm": "key_norm",
            "relative_bias": "relative_bias",
            "sink": "sink",
        },
        "positional_encoding": {"weight": "weight"},
        "embedding": {"weight": "weight"},
        "layer_norm": {"gain": "gain", "bias": "bias"},
        "rms_norm": {"gain": "gain", "bias": "bias"},
        "feed_forward": {"gate": "gate", "inner": "inner", "outer": "outer"},
        "mixture_of_experts": {
            name: name for name in ("router", "experts", "shared_expert", "shared_gate")
        },
        "residual": {"norm": "norm"},
        "encoder_layer": _LAYER,
        "decoder_layer": _LAYER,
        "encoder": _STACK,
        "decoder": _STACK,
        "generator": {"weight": "weight", "bias": "bias"},
        "causal_layer": _BLOCK,
        "language_model": {
            **{name: name for name in ("embedding", "positions", "embedding_norm", "norm")},
            "layers": "layers",
            "generator": "generator",
        },
        "model": {
            "source_embedding": "source_embedding",
            "target_embedding": "target_embedding",
            "source_positions": "source_positions",
            "target_positions": "target_positions",
            "source_embedding_norm": "source_embedding_norm",
            "target_embedding_norm": "target_embedding_norm",
            "encoder": "encoder",
            "decoder": "decoder",
            "generator": "generator",
        },
    }

    def drop(self, x: Tensor, rate: float) -> Tensor:
        """Set numbers to zero with probability `rate` and scale the others up."""
        return functional.dropout(x, rate, training=True)

    def initialise(self, weight: Tensor) -> None:
        """Fill a weight of two dimensions with its first random values, in place."""
        nn.init.xavier_uniform_(weight)

    def make_linear(self, inputs: int, outputs: int, *, bias: bool = True) -> nn.Module:
        """Build an initialised linear map."""
        layer = nn.Linear(inputs, outputs, bias=bias)
        self.initialise(layer.weight)
        if bias:
            nn.init.zeros_(layer.bias)
        return layer

    def linear(self, layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Apply a linear map made by :meth:`make_linear`."""
        return layer(x)

    def padding_mask(self, tokens: Tensor, pad: int) -> Tensor:
        """Return (B, 1, 1, S) for tokens (B, S): every key that is a real token."""
        return (tokens != pad)[:, None, None, :]

    def causal_mask(self, length: int, device: torch.device | None = None) -> Tensor:
        """Return (1, 1, T, T): every key that does not come after its query."""
        ones = torch.ones(length, length, dtype=torch.bool, device=device)
        return ones.tril()[None, None]

    def scores(self, query: Tensor, key: Tensor, factor: float) -> Tensor:
        """Return the products (B, H, Q, K) of queries and keys, times `factor`."""
        return query @ key.transpose(-2, -1) * factor

    def mask_scores(self, raw: Tensor, mask: Mask) -> Tensor:
        """Return the scores with those of masked keys filled in."""
        if mask is None:
            return raw
        if self.choices.fully_masked_row != "unspecified":
            # The row is rewritten after the softmax, and must not be NaN on its way there.
            mask = mask | ~mask.any(dim=-1, keepdim=True)
        return raw.masked_fill(~mask, self._fill(raw))

    def _fill(self, raw: Tensor) -> float:
        if self.choices.mask_fill == "exact":
            return -math.inf
        return max(float(self.choices.mask_fill), torch.finfo(raw.dtype).min)

    def softmax(self, scores: Tensor) -> Tensor:
        """Return weights that are positive and sum to 1 over the keys."""
        return torch.softmax(scores, dim=-1)

    def empty_rows(self, weights: Tensor, mask: Mask) -> Tensor:
        """Return the weights with the rows that keep no key as declared."""
        options = {"uniform": 1.0 / weights.shape[-1], "zero": 0.0, "nan": math.nan}
        declared = options.get(self.choices.fully_masked_row)
        if mask is None or declared is None:
            return weights
        return weights.masked_fill(~mask.any(dim=-1, keepdim=True), declared)

    def mix(self, weights: Tensor, value: Tensor) -> Tensor:
        """Return the mean of the values under the weights."""
        return weights @ value

    def make_multi_head_attention(self) -> Node:
        """Build the four projections."""
        self.check_sizes("d_model", "heads")
        self.check_heads()
        biased = projection_biases(self.choices)
        outer, inner = self.sizes.d_model, self.head_width() * self.sizes.heads
        shared = self.head_width() * self.key_heads()
        return Node(
            self,
            "multi_head_attention",
            query=self.make_linear(outer, inner, bias="query" in biased),
            key=self.make_linear(outer, shared, bias="key" in biased),
            value=self.make_linear(outer, shared, bias="value" in biased),
            output=self.make_linear(inner, outer, bias="output" in biased),
            **self.placing_parts(),
        )

    def project(self, module: Node, name: str, x: Tensor) -> Tensor:
        """Apply the projection `name`: query, key, value or output."""
        return self.linear(getattr(module, name), x)

    def split_heads(self, x: Tensor) -> Tensor:
        """Return (B, L, H * E) as (B, H, L, E)."""
        batch, length, _ = x.shape
        return x.view(batch, length, -1, self.head_width()).transpose(1, 2)

    def repeat_heads(self, x: Tensor, times: int) -> Tensor:
        """Return x (B, G, K, E) with every head `times` times in a row."""
        return x.repeat_interleave(times, dim=1)

    def merge_heads(self, x: Tensor) -> Tensor:
        """Return (B, H, L, E) as (B, L, H * E)."""
        batch, _, length, _ = x.shape
        return x.transpose(1, 2).contiguous().view(batch, length, -1)

    def head_mask(self, mask: Mask, batch: int, queries: int, keys: int) -> Mask:
        """Return the mask as attention in heads takes it, broadcastable to (B, H, Q, K)."""
        return mask

    def make_embedding(self, vocabulary: int) -> Node:
        """Build a table of `vocabulary` rows."""
        self.check_sizes("d_model", "source_vocabulary", "target_vocabulary")
        weight = nn.Parameter(torch.empty(vocabulary, self.sizes.d_model))
        self.initialise(weight)
        return Node(self, "embedding", weight=weight)

    def vocabulary_of(self, module: Node) -> int:
        """Return the number of rows of the table."""
        return int(module.weight.shape[0])

    def lookup(self, module: Node, tokens: Tensor) -> Tensor:
        """Return the row of every token."""
        return functional.embedding(tokens, module.weight)

    def make_positions(self) -> Node:
        """Build the positional encoding: a fixed table, a learned one, or nothing."""
        self.check_sizes("d_model", "max_length")
        length, width = self.sizes.max_length, self.sizes.d_model
        if learned_positions(self.choices):
            weight = nn.Parameter(torch.empty(self.first_position() + length, width))
            self.initialise(weight)
            return Node(self, "positional_encoding", weight=weight)
        module = Node(self, "positional_encoding")
        if self.choices.positional_encoding != "none":
            self.hold_table(module, self.position_table(length, width))
        return module

    def hold_table(self, module: Node, table: Tensor) -> None:
        """Keep a fixed table in `module`: it moves along and is not saved."""
        module.register_buffer("table", table, persistent=False)

    def position_rows(self, module: Node, length: int, device: torch.device | None) -> Tensor:
        """Return the rows (S, D) of the first `length` positions."""
        learned = learned_positions(self.choices)
        rows: Tensor = module.weight[self.first_position() :] if learned else module.table
        self.check_length(length, len(rows))
        return self.scale_rows(rows[:length])

    def frequencies(self, d_model: int, device: torch.device | None) -> Tensor:
        """Return the angle between neighbouring positions for every pair of columns."""
        return 1.0 / 10000.0 ** self.exponents(d_model, device)

    def arrange(self, sines: Tensor, cosines: Tensor, d_model: int) -> Tensor:
        """Put sines and cosines (S, pairs) into the columns (S, D), in turn or in halves."""
        table = sines.new_zeros(sines.shape[0], d_model)
        first, half = sines.shape[1], d_model // 2
        halves = self.choices.positional_encoding.startswith("halves")
        into_sines, into_cosines = (
            (slice(0, first), slice(first, first + half))
            if halves
            else (slice(0, None, 2), slice(1, None, 2))
        )
        table[:, into_sines] = sines
        table[:, into_cosines] = cosines[:, :half]
        return table

    def make_norm(self) -> Node:
        """Build a norm with a weight (gamma) of 1 and a bias of 0."""
        self.check_sizes("d_model")
        if self.choices.norm_variance == "unbiased" and self.sizes.d_model == 1:
            raise ValueError("The unbiased variance divides by n - 1, which is 0 at d_model 1.")
        width = self.sizes.d_model
        biased = self.choices.norm_bias == "present"
        bias = nn.Parameter(torch.zeros(width)) if biased else None
        return Node(self, "layer_norm", gain=nn.Parameter(torch.ones(width)), bias=bias)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the columns, as (.., 1)."""
        return x.mean(dim=-1, keepdim=True)

    def variance(self, centred: Tensor) -> Tensor:
        """Return the mean of the squared deviations, as (.., 1)."""
        total = centred.pow(2).sum(dim=-1, keepdim=True)
        return total / (centred.shape[-1] - (self.choices.norm_variance == "unbiased"))

    def normalise(self, centred: Tensor, variance: Tensor) -> Tensor:
        """Return the deviations divided by their size."""
        if self.choices.norm_epsilon_place == "inside-root":
            return centred / torch.sqrt(variance + self.epsilon())
        return centred / (self.root(variance) + self.epsilon())

    def affine(self, module: Node, normalised: Tensor) -> Tensor:
        """Multiply by the weight (gamma) and add the bias."""
        scaled: Tensor = module.gain * normalised
        return scaled if module.bias is None else scaled + module.bias

    def activation(self, x: Tensor) -> Tensor:
        """Apply the chosen activation."""
        chosen = ACTIVATIONS[self.choices.activation]
        return chosen(x)

    def make_generator(self) -> Node:
        """Build the linear map to the target vocabulary."""
        self.check_sizes("d_model", "target_vocabulary")
        weight = nn.Parameter(torch.empty(self.sizes.target_vocabulary, self.sizes.d_model))
        self.initialise(weight)
        biased = self.choices.generator_bias == "present"
        bias = nn.Parameter(torch.zeros(self.sizes.target_vocabulary)) if biased else None
        return Node(self, "generator", weight=weight, bias=bias)

    def generator_logits(self, module: Node, x: Tensor) -> Tensor:
        """Apply the linear map."""
        return functional.linear(x, module.weight, module.bias)

    def generator_output(self, logits: Tensor) -> Tensor:
        """Return probabilities, their logarithms, or the logits, as chosen."""
        if self.choices.output == "logits":
            return logits
        if self.choices.output == "probabilities":
            return torch.softmax(logits, dim=-1)
        return torch.log_softmax(logits, dim=-1)

    def share_matrix(self, part: Node, other: Node) -> None:
        """Give `part` the vocabulary matrix of `other`."""
        part.weight = other.weight

    def last_real(self, output: Tensor, tokens: Tensor) -> Tensor:
        """Return the scores (B, V) at the last token that is no padding."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        last = (places * (tokens != self.sizes.target_pad)).argmax(dim=1)
        return output[torch.arange(len(tokens), device=tokens.device), last]

    def append(self, tokens: Tensor, chosen: Tensor) -> Tensor:
        """Return tokens (.., T) with one more column, `chosen` (..)."""
        return torch.cat([tokens, chosen[..., None].to(tokens.dtype)], dim=-1)

    def choose(self, following: Tensor) -> Tensor:
        """Return the best tokens (B) by their scores (B, V)."""
        return following.argmax(dim=-1)

    def fill_ended(self, chosen: Tensor, ended: Tensor) -> Tensor:
        """Return the chosen tokens (B), the filling where a sequence has ended."""
        return torch.where(ended, self.fill_id(), chosen)

    def spread_memory(self, memory: Tensor, beams: int) -> Tensor:
        """Return the memory (B * N, S, D) of every beam, for that (B, S, D) of every sequence."""
        return memory.repeat_interleave(beams, dim=0)

    def logarithms(self, following: Tensor) -> Tensor:
        """Return the log-probabilities that the model's scores are, as declared."""
        if self.choices.output == "logits":
            return torch.log_softmax(following, dim=-1)
        return torch.log(following) if self.choices.output == "probabilities" else following

    def pick(self, values: Tensor, count: int) -> Tensor:
        """Return the places (B, count) of the greatest of the values (B, N * V), in order."""
        return values.topk(count, dim=1).indices

    def reorder(self, values: Tensor, origin: Tensor) -> Tensor:
        """Return values (B, N, ..) of the beams that `origin` (B, N) names."""
        rows = torch.arange(len(origin), device=origin.device)[:, None]
        return values[rows, origin]

    def keep_top_k(self, logits: Tensor, count: int) -> Tensor:
        """Return the logits (B, V) with minus infinity below the `count` greatest."""
        least = logits.topk(count, dim=-1).values[:, -1:]
        return logits.masked_fill(logits < least, -math.inf)

    def keep_top_p(self, logits: Tensor, whole: Tensor, share: float) -> Tensor:
        """Return the logits (B, V), minus infinity outside of the nucleus of `whole` (B, V)."""
        if share >= 1:
            return logits
        ranked, order = torch.softmax(whole, dim=-1).sort(dim=-1, descending=True)
        out = ranked.cumsum(dim=-1) - ranked >= share
        out[:, 0] = False
        return logits.masked_fill(torch.zeros_like(out).scatter(1, order, out), -math.inf)
