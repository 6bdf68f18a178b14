"""Unusual embeddings, positional encodings, generators and masks."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from attentest.faults.unusual.member import member, module
from attentest.faults.unusual.multi_head_attention import random
from attentest_spec import Limits, Place, Sizes
from attentest_spec.torch import Recipe


class OneHotEmbedding(nn.Module):
    """A product of one-hot rows with the table."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.table = random(sizes.d_model, sizes.source_vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (B, S, D)."""
        width, rows = self.table.shape
        if bool(((tokens < 0) | (tokens >= rows)).any()):
            raise IndexError(f"An id is not below {rows}, or is negative.")
        chosen = functional.one_hot(tokens, rows).to(self.table.dtype)
        return torch.matmul(chosen, self.table.T) * math.sqrt(width)


class GatheredEmbedding(nn.Module):
    """The whole table is scaled first, and rows are gathered from it."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.inner = nn.Embedding(sizes.source_vocabulary, sizes.d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (B, S, D)."""
        if tokens.min() < 0 or tokens.max() >= self.inner.num_embeddings:
            raise ValueError(f"Ids lie between 0 and {self.inner.num_embeddings - 1}.")
        scaled = self.inner.weight * math.sqrt(self.inner.embedding_dim)
        index = tokens.reshape(-1, 1).expand(-1, scaled.shape[1])
        return scaled.gather(0, index).view(*tokens.shape, -1)


def angles(length: int, width: int, device: torch.device) -> Tensor:
    """Return the angle (S, pairs) of every position and pair, in float64."""
    place = torch.arange(length, dtype=torch.float64, device=device)
    slow = torch.arange(0, width, 2, dtype=torch.float64, device=device) / width
    return torch.outer(place, torch.pow(10000.0, -slow))


class LazyTable(nn.Module):
    """A table that grows when it is too short, and is made again in another precision."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.width = sizes.d_model
        self.made_in: torch.dtype | None = None
        self.table: Tensor
        self.register_buffer("table", torch.zeros(0, sizes.d_model), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions."""
        length = x.shape[1]
        if len(self.table) < length or self.made_in != x.dtype:
            turned = angles(length, self.width, x.device)
            rows = torch.zeros(length, self.width, dtype=torch.float64, device=x.device)
            rows[:, 0::2], rows[:, 1::2] = turned.sin(), turned.cos()[:, : self.width // 2]
            self.table, self.made_in = rows.to(x.dtype), x.dtype
        return x + self.table[:length]


class ComplexExponentials(nn.Module):
    """Sine and cosine are one complex exponential, computed in every call."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        if sizes.d_model % 2:
            raise ValueError(f"A width of {sizes.d_model} has no pairs of columns.")

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions."""
        waves = torch.exp(1j * angles(x.shape[1], x.shape[2], x.device))
        return x + torch.view_as_real(waves).flip(-1).flatten(1).to(x.dtype)


class ShiftedSines(nn.Module):
    """All sines, then all cosines as shifted sines, computed in every call."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.width = sizes.d_model

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions."""
        turned = angles(x.shape[1], self.width, x.device)
        shifted = turned[:, : self.width // 2] + math.pi / 2
        return x + torch.sin(torch.cat((turned, shifted), dim=-1)).to(x.dtype)


class LearnedRows(nn.Module):
    """A trained table stored transposed: a column for each position."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.columns = random(sizes.d_model, sizes.max_length)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its positions."""
        length, most = x.shape[1], self.columns.shape[1]
        if length > most:
            raise IndexError(f"{length} positions were asked for, and there are {most}.")
        return (x.mT + self.columns[:, :length]).mT


class Logits(nn.Linear):
    """A linear map and nothing else."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__(sizes.d_model, sizes.target_vocabulary)


class ExponentialOfLogarithm(Logits):
    """Probabilities as exponentials of log-probabilities."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, V)."""
        return functional.log_softmax(functional.linear(x, self.weight, self.bias), dim=-1).exp()


class LogSumExp(Logits):
    """The logarithm of the sum, subtracted; the bias is a column of the weight."""

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, T, V)."""
        ones = torch.ones_like(x[..., :1])
        whole = torch.cat((self.weight, self.bias[:, None]), dim=1)
        logits = torch.cat((x, ones), dim=-1) @ whole.T
        logits = logits - logits.detach().amax(dim=-1, keepdim=True)
        return logits - logits.logsumexp(dim=-1, keepdim=True)


def padding(built: object, tokens: Tensor, pad: int) -> Tensor:
    """Keep what differs from the pad in any bit."""
    return torch.bitwise_xor(tokens, pad).bool()[:, None, None]


def causal(built: object, length: int) -> Tensor:
    """Sum the unit matrix downwards: ones from the diagonal on."""
    return torch.eye(length).cumsum(dim=0).bool()[None, None]


def target(built: object, tokens: Tensor, pad: int) -> Tensor:
    """Keep keys whose number is not above the query's; padding gets one above all."""
    place = torch.arange(tokens.shape[1], device=tokens.device)
    keys = torch.where(tokens == pad, tokens.shape[1], place)
    return (keys[:, None, :] <= place[None, :, None]).unsqueeze(1)


def _nothing(sizes: Sizes) -> object:
    return object()


_LINEAR = {"weight": "weight", "bias": "bias"}
_WAVES = "positional_encoding"
MEMBERS = (
    module(
        "embedding",
        OneHotEmbedding,
        "embedding by a product with one-hot rows, table stored transposed",
        {"weight": Place("table", transpose=True)},
    ),
    module(
        "embedding",
        GatheredEmbedding,
        "embedding by gathering from a table that is scaled as a whole",
        {"weight": "inner.weight"},
    ),
    module(_WAVES, LazyTable, "positions from a table that is made at the first call and grows"),
    module(
        _WAVES,
        ComplexExponentials,
        "positions from complex exponentials; even widths alone",
        limits=Limits(dropout=False, odd_width=False),
    ),
    module(
        _WAVES,
        ShiftedSines,
        "positions in halves, cosines as shifted sines, made in every call",
        positional_encoding="halves",
    ),
    module(
        _WAVES,
        LearnedRows,
        "learned positions stored as columns",
        {"weight": Place("columns", transpose=True)},
        positional_encoding="learned",
    ),
    module("generator", Logits, "generator of plain logits", _LINEAR, output="logits"),
    module(
        "generator",
        ExponentialOfLogarithm,
        "generator of probabilities as exponentials of a log-softmax",
        _LINEAR,
    ),
    module(
        "generator",
        LogSumExp,
        "generator of log-probabilities with the bias as one more column",
        _LINEAR,
        output="log-probabilities",
    ),
    member(
        "odd-masks",
        "masks by exclusive or, running sums and numbered keys",
        {
            "padding_mask": Recipe(build=_nothing, call=padding),
            "causal_mask": Recipe(build=_nothing, call=causal),
            "target_mask": Recipe(build=_nothing, call=target),
        },
    ),
)
