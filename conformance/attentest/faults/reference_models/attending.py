"""The choices inside attention, by both reference models: step by step, and in few operations."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.reference_models.hooks import Hooks
from attentest.faults.reference_models.modules import Node


class PlainAttending(Hooks):
    """Loops over heads, logarithms of distances, and a table that is looked up."""

    def cap_scores(self, raw: Tensor, cap: float) -> Tensor:
        """Return the scores bounded softly by `cap`."""
        return cap * torch.tanh(raw / cap)

    def unit_heads(self, x: Tensor) -> Tensor:
        """Return x (B, H, L, E), every head divided by its length."""
        return functional.normalize(x, dim=-1)

    def make_sink(self) -> Node:
        """Build the scores of nothing, one for each head."""
        return Node(self, "sink", score=nn.Parameter(torch.randn(self.sizes.heads)))

    def sink_scores(self, module: Node) -> Tensor:
        """Return the scores of nothing, (H, 1, 1)."""
        scores: Tensor = module.sink.score[:, None, None]
        return scores

    def weigh_with_sink(self, raw: Tensor, sink: Tensor) -> Tensor:
        """Return the weights of the keys: of one column more, which is cut off."""
        column = sink.expand(*raw.shape[:-1], 1)
        return self.weigh(torch.cat([raw, column], dim=-1))[..., :-1]

    def make_bias(self) -> Node:
        """Build the numbers of all buckets and heads."""
        weight = nn.Parameter(torch.empty(self.sizes.bias_buckets, self.sizes.heads))
        nn.init.normal_(weight, std=0.1)
        return Node(self, "relative_bias", weight=weight)

    def geometric_slopes(self, heads: int) -> Tensor:
        """Return the slopes (H) of a number of heads that is a power of two, in float64."""
        ratio = 2.0 ** (-8.0 / heads)
        return torch.tensor([ratio ** (one + 1) for one in range(heads)], dtype=torch.float64)

    def bucket_of(self, distance: Tensor, count: int) -> Tensor:
        """Return the bucket (Q, K) of distances that are not negative, of `count` buckets."""
        exact = count // 2
        ratio = (distance.clamp(min=1).double() / exact).log()
        ratio = ratio / math.log(self.sizes.bias_distance / exact)
        far = (exact + (ratio * (count - exact) + 1e-9).floor().long()).clamp(max=count - 1)
        return torch.where(distance < exact, distance, far)

    def bucket_bias(self, module: Node, buckets: Tensor) -> Tensor:
        """Return the bias (H, Q, K) of buckets (Q, K)."""
        rows = functional.embedding(buckets, module.relative_bias.weight)
        return rows.permute(2, 0, 1)


class FusedAttending(Hooks):
    """Powers of a tensor, boundaries of buckets, and an index of a transposed table."""

    def cap_scores(self, raw: Tensor, cap: float) -> Tensor:
        """Return the scores bounded softly by `cap`."""
        return raw.div(cap).tanh().mul(cap)

    def unit_heads(self, x: Tensor) -> Tensor:
        """Return x (B, H, L, E), every head divided by its length."""
        square = torch.einsum("bhle,bhle->bhl", x, x)[..., None]
        short = square < 1e-24
        return x / torch.where(short, 1.0, square).sqrt().masked_fill(short, 1e-12)

    def make_sink(self) -> Node:
        """Build the scores of nothing, one for each head."""
        return Node(self, "sink", scores=nn.Parameter(torch.randn(self.sizes.heads)))

    def sink_scores(self, module: Node) -> Tensor:
        """Return the scores of nothing, (H, 1, 1)."""
        scores: Tensor = module.sink.scores.view(-1, 1, 1)
        return scores

    def weigh_with_sink(self, raw: Tensor, sink: Tensor) -> Tensor:
        """Return the weights of the keys: those without a sink, times the share that is theirs."""
        total = raw.logsumexp(dim=-1, keepdim=True)
        return self.weigh(raw) * torch.sigmoid(total - sink)

    def make_bias(self) -> Node:
        """Build the numbers of all buckets and heads."""
        table = torch.randn(self.sizes.bias_buckets, self.sizes.heads) / 10.0
        return Node(self, "relative_bias", table=nn.Parameter(table))

    def geometric_slopes(self, heads: int) -> Tensor:
        """Return the slopes (H) of a number of heads that is a power of two, in float64."""
        return torch.exp2(torch.linspace(-8.0 / heads, -8.0, heads, dtype=torch.float64))

    def bucket_of(self, distance: Tensor, count: int) -> Tensor:
        """Return the bucket (Q, K) of distances that are not negative, of `count` buckets."""
        exact = count // 2
        steps = torch.arange(1, count - exact, dtype=torch.float64) / (count - exact)
        begins = exact * (self.sizes.bias_distance / exact) ** steps
        begins = torch.cat([torch.arange(1, exact + 1), begins - 1e-9]).to(distance.device)
        return torch.bucketize(distance.double(), begins, right=True)

    def bucket_bias(self, module: Node, buckets: Tensor) -> Tensor:
        """Return the bias (H, Q, K) of buckets (Q, K)."""
        bias: Tensor = module.relative_bias.table.T[:, buckets]
        return bias
