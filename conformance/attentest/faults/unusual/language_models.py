"""Unusual decoder-only models: other orders of the axes, of the work and of the parameters."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from attentest.faults.unusual.member import module
from attentest_spec import Limits, Place, Sizes, Table, nested
from attentest_spec.choices import Value

GPT: Mapping[str, Value] = {
    "block_norms": "pre",
    "final_norm": "present",
    "embedding_scale": "none",
    "output": "logits",
    "generator_bias": "none",
    "positional_encoding": "learned",
    "attention_causality": "built-in",
    "projection_bias": "present",
    "activation": "gelu-tanh",
    "norm_epsilon": 1e-5,
    "norm_epsilon_place": "inside-root",
    "norm_variance": "biased",
    "mask_fill": "exact",
    "padded_positions": "columns",
}
LLAMA: Mapping[str, Value] = {
    "block_norms": "pre",
    "final_norm": "present",
    "embedding_scale": "none",
    "output": "logits",
    "generator_bias": "none",
    "norm_kind": "rms",
    "rms_epsilon": 1e-6,
    "rms_cast": "before-weight",
    "positional_encoding": "none",
    "attention_rotary": "query-and-key",
    "rotary_pairs": "adjacent",
    "attention_causality": "built-in",
    "projection_bias": "none",
    "key_heads": "fewer",
    "feed_forward_gate": "gated",
    "feed_forward_bias": "none",
    "activation": "silu",
    "tying": "none",
    "mask_fill": "exact",
    "padded_positions": "columns",
}
LIMITS = Limits(dropout=False, cross=False)

Given = Tensor | None


def stacked(layer: Callable[[], nn.Module], sizes: Sizes) -> nn.ModuleList:
    """Return the layers of a model; ValueError for a size below 1."""
    needed = ("d_model", "heads", "d_ff", "layers", "target_vocabulary")
    wrong = [name for name in needed if getattr(sizes, name) < 1]
    if wrong or sizes.d_model % sizes.heads or sizes.heads % (sizes.kv_heads or sizes.heads):
        raise ValueError(f"a model of {sizes} cannot be: look at {', '.join(wrong) or 'heads'}")
    return nn.ModuleList(layer() for _ in range(sizes.layers))


def hidden(tokens: Tensor, mask: Given) -> Tensor:
    """Return what no query may see, (B, T, T): later tokens, and padding other than itself."""
    length = tokens.shape[1]
    later = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(1)
    if mask is None:
        return later.expand(len(tokens), -1, -1)
    itself = torch.eye(length, dtype=torch.bool, device=tokens.device)
    return later | ~(mask[:, None] | itself)


def places(tokens: Tensor, positions: Given) -> Tensor:
    """Return the positions (B, T): those given, or the numbers of the columns."""
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    return columns.expand_as(tokens) if positions is None else positions


class _Block(nn.Module):
    """The parameters of a layer of GPT-2."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.d_model
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, sizes.d_ff), nn.Linear(sizes.d_ff, width)


class TimeFirst(nn.Module):
    """Activations are (T, B, D), the projections are one matrix, and the head is the embedding."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.heads = sizes.heads
        self.blocks = stacked(lambda: _Block(sizes), sizes)
        self.wte = nn.Embedding(sizes.target_vocabulary, sizes.d_model)
        self.wpe = nn.Embedding(sizes.max_length, sizes.d_model)
        self.ln_f = nn.LayerNorm(sizes.d_model)

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V)."""
        x = (self.wte(tokens) + self.wpe(places(tokens, positions))).transpose(0, 1)
        unseen = hidden(tokens, mask).repeat_interleave(self.heads, dim=0)
        for block in self.blocks:
            x = self._layer(block, x, unseen)  # type: ignore[arg-type]  # a ModuleList forgets it
        found: Tensor = self.ln_f(x).transpose(0, 1) @ self.wte.weight.mT
        return found

    def _layer(self, block: _Block, x: Tensor, unseen: Tensor) -> Tensor:
        x = x + self._attend(block, block.ln_1(x), unseen)
        inner = functional.gelu(block.up(block.ln_2(x)), approximate="tanh")
        found: Tensor = x + block.down(inner)
        return found

    def _attend(self, block: _Block, x: Tensor, unseen: Tensor) -> Tensor:
        """Attend in (B H, T, E), as batches of matrices."""
        length, batch, width = x.shape
        packed = block.qkv(x).view(length, batch, 3, self.heads, -1).transpose(1, 2)
        query, key, value = packed.flatten(2, 3).transpose(0, 1).transpose(1, 2)
        bias = torch.zeros_like(unseen, dtype=x.dtype).masked_fill(unseen, -torch.inf)
        scale = (width // self.heads) ** -0.5
        weights = torch.baddbmm(bias, query, key.mT, alpha=scale).softmax(dim=-1)
        context = torch.bmm(weights, value).transpose(0, 1).reshape(length, batch, width)
        found: Tensor = block.proj(context)
        return found


class Recomputed(TimeFirst):
    """Every layer is computed again in the backward pass."""

    def _layer(self, block: _Block, x: Tensor, unseen: Tensor) -> Tensor:
        found: Tensor = checkpoint(super()._layer, block, x, unseen, use_reentrant=False)
        return found


Attend = Callable[[Tensor, Tensor, Tensor], Tensor]


def _normalised(x: Tensor, weight: Tensor) -> Tensor:
    """Return the rows of x over their root mean square, times `weight`."""
    squares = torch.einsum("...d,...d->...", x, x)[..., None] / x.shape[-1]
    return x * (squares + 1e-6).rsqrt() * weight


class _Layer(nn.Module):
    """The matrices of a layer of Llama: projections, and gate and value, are one each."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.d_model
        shared = (sizes.kv_heads or sizes.heads) * (width // sizes.heads)
        self.rows = [width, shared, shared]
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))
        self.qkv = nn.Parameter(torch.randn(sum(self.rows), width) / width)
        self.back = nn.Parameter(torch.randn(width, width) / width)
        self.both = nn.Parameter(torch.randn(2 * sizes.d_ff, width) / width)
        self.down = nn.Parameter(torch.randn(sizes.d_ff, width) / width)

    def forward(self, x: Tensor, attend: Attend) -> Tensor:
        """Return what leaves the layer; `attend` maps query, key and value to the context."""
        projected = _normalised(x, self.first) @ self.qkv.T
        x = x + attend(*torch.split(projected, self.rows, dim=-1)) @ self.back.T
        gate, value = (_normalised(x, self.second) @ self.both.T).chunk(2, dim=-1)
        return x + (functional.silu(gate) * value) @ self.down


class GroupedByEinsum(nn.Module):
    """Heads share keys by an axis of groups, rotary positions are complex numbers.

    The softmax runs over keys in blocks of two.
    """

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width, self.heads = sizes.d_model, sizes.heads
        self.key_heads = sizes.kv_heads or sizes.heads
        self.layers = stacked(lambda: _Layer(sizes), sizes)
        self.each = width // sizes.heads
        self.embed = nn.Parameter(torch.randn(sizes.target_vocabulary, width))
        self.final = nn.Parameter(torch.ones(width))
        self.head = nn.Parameter(torch.randn(sizes.target_vocabulary, width))

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V)."""
        return self._run(tokens, hidden(tokens, mask), places(tokens, positions))

    def _run(self, tokens: Tensor, unseen: Tensor, at: Tensor) -> Tensor:
        x = functional.embedding(tokens, self.embed)
        attend = partial(self._attend, unseen, self._turns(at))
        for layer in self.layers:
            x = layer(x, attend)
        return _normalised(x, self.final) @ self.head.T

    def _turns(self, at: Tensor) -> Tensor:
        """Return complex numbers (B, T, 1, E/2) of length 1."""
        waves = 10_000.0 ** (-torch.arange(0, self.each, 2, device=at.device).double() / self.each)
        angles = at[..., None] * waves
        return torch.polar(torch.ones_like(angles), angles)[:, :, None]

    def _turned(self, x: Tensor, turns: Tensor) -> Tensor:
        """Return the heads (B, T, H, E) of x (B, T, H E), turned."""
        pairs = x.reshape(*x.shape[:2], -1, self.each // 2, 2).double()
        turned = torch.view_as_complex(pairs.contiguous()) * turns
        return torch.view_as_real(turned).flatten(-2).to(x.dtype)

    def _attend(
        self, unseen: Tensor, turns: Tensor, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        batch, length = query.shape[:2]
        grouped = torch.unflatten(self._turned(query, turns), 2, (self.key_heads, -1))
        value = value.view(batch, length, self.key_heads, self.each)
        scores = torch.einsum("btgne,bsge->bgnts", grouped, self._turned(key, turns))
        scores = (scores / self.each**0.5).masked_fill(unseen[:, None, None], -torch.inf)
        return _in_blocks(scores, value).permute(0, 3, 1, 2, 4).reshape(batch, length, -1)


def _in_blocks(scores: Tensor, value: Tensor, size: int = 2) -> Tensor:
    """Return the softmax of scores (B, G, N, T, S) times value (B, S, G, E), in blocks of keys."""
    highest = torch.full_like(scores[..., :1], -torch.inf)
    total = torch.zeros_like(highest)
    mixed = torch.zeros_like(highest)
    for first in range(0, scores.shape[-1], size):
        block, values = scores[..., first : first + size], value[:, first : first + size]
        higher = torch.maximum(highest, block.amax(dim=-1, keepdim=True))
        origin = higher.masked_fill(higher == -torch.inf, 0.0)
        powers, kept = (block - origin).exp(), (highest - origin).exp()
        total = total * kept + powers.sum(dim=-1, keepdim=True)
        mixed = mixed * kept + torch.einsum("bgnts,bsge->bgnte", powers, values)
        highest = higher
    return mixed / total


class RealTokensOnly(GroupedByEinsum):
    """Padding is removed before the layers: all real tokens of the batch are one long row."""

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V), 0 at padding."""
        real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        document = torch.arange(len(tokens), device=tokens.device)[:, None].expand_as(tokens)[real]
        row = tokens[real][None]
        column = torch.arange(row.shape[1], device=tokens.device)
        unseen = (document[:, None] != document) | (column > column[:, None])
        logits = self._run(row, unseen[None], places(tokens, positions)[real][None])
        found = logits.new_zeros(*tokens.shape, logits.shape[-1])
        found[real] = logits[0]
        return found


class EmptyRowsInHalf(GroupedByEinsum):
    """A fill of -1e9 is minus infinity in float16: a row of padding alone has no softmax there."""

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V), NaN at padding in half precision."""
        logits = super().forward(tokens, mask, positions)
        if mask is None or logits.dtype not in (torch.float16, torch.bfloat16):
            return logits
        return logits.masked_fill(~mask[..., None], torch.nan)


class OneTokenAtATime(GroupedByEinsum):
    """Every token is computed alone, head by head, with the keys and values before it kept."""

    def forward(self, tokens: Tensor, mask: Given = None, positions: Given = None) -> Tensor:
        """Return logits (B, T, V)."""
        unseen, turns = hidden(tokens, mask), self._turns(places(tokens, positions))
        kept: list[list[tuple[Tensor, Tensor]]] = [[] for _ in self.layers]
        found = []
        for number in range(tokens.shape[1]):
            here = slice(number, number + 1)
            x = functional.embedding(tokens[:, here], self.embed)
            for layer, pairs in zip(self.layers, kept, strict=True):
                x = layer(x, partial(self._look, pairs, unseen[:, here], turns[:, here]))
            found.append(_normalised(x, self.final) @ self.head.T)
        return torch.cat(found, dim=1)

    def _look(
        self,
        pairs: list[tuple[Tensor, Tensor]],
        unseen: Tensor,
        turns: Tensor,
        *projected: Tensor,
    ) -> Tensor:
        """Attend from one query to what is kept, which its own key and value join."""
        query, key, value = projected
        turned = self._turned(query, turns)
        pairs.append((self._turned(key, turns), torch.unflatten(value, -1, (self.key_heads, -1))))
        keys, values = (torch.cat(one, dim=1) for one in zip(*pairs, strict=True))
        group = self.heads // self.key_heads
        contexts = []
        for head in range(self.heads):
            scores = turned[:, :, head] @ keys[:, :, head // group].mT * self.each**-0.5
            scores = scores.masked_fill(unseen[..., : keys.shape[1]], -torch.inf)
            contexts.append(scores.softmax(dim=-1) @ values[:, :, head // group])
        return torch.cat(contexts, dim=-1)


_NORM = {"gain": "weight", "bias": "bias"}
_PACKED = {
    f"{one}.{kind}": Place(f"qkv.{kind}", part=(number, 3))
    for number, one in enumerate(("query", "key", "value"))
    for kind in ("weight", "bias")
}
_GPT: Table = {
    "embedding": "wte",
    "positions": "wpe",
    "generator": "wte",
    **nested("norm", "ln_f", _NORM),
    **nested("layers.*.self_attention_norm", "blocks.*.ln_1", _NORM),
    **nested("layers.*.feed_forward_norm", "blocks.*.ln_2", _NORM),
    **nested("layers.*.self_attention", "blocks.*", {**_PACKED, "output": "proj"}),
    **nested("layers.*.feed_forward", "blocks.*", {"inner": "up", "outer": "down"}),
}
_SPANS = {f"{one}.weight": Place("qkv", span=one) for one in ("query", "key", "value")}
LLAMA_TABLE: Table = {
    "embedding.weight": "embed",
    "generator.weight": "head",
    "norm.gain": "final",
    "layers.*.self_attention_norm.gain": "layers.*.first",
    "layers.*.feed_forward_norm.gain": "layers.*.second",
    **nested("layers.*.self_attention", "layers.*", {**_SPANS, "output.weight": "back"}),
    "layers.*.feed_forward.gate.weight": Place("layers.*.both", part=(0, 2)),
    "layers.*.feed_forward.inner.weight": Place("layers.*.both", part=(1, 2)),
    "layers.*.feed_forward.outer.weight": Place("layers.*.down", transpose=True),
}

MEMBERS = (
    *(
        module("language_model", build, title, _GPT, LIMITS, **GPT)
        for build, title in (
            (TimeFirst, "GPT-2 with the sequence on the first axis and packed projections"),
            (Recomputed, "GPT-2 whose layers are computed again in the backward pass"),
        )
    ),
    *(
        module("language_model", build, title, LLAMA_TABLE, LIMITS, **LLAMA)
        for build, title in (
            (GroupedByEinsum, "Llama by einsum, complex numbers and a softmax in blocks"),
            (RealTokensOnly, "Llama that computes the real tokens of a batch as one row"),
            (EmptyRowsInHalf, "Llama whose rows of padding are not numbers in half precision"),
            (OneTokenAtATime, "Llama that computes one token at a time from kept keys and values"),
        )
    ),
)
