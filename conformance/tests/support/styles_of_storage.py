"""Multi-head attentions by how they are stored: packed, turned, a list of heads, bare tensors."""

import torch
from styles_of_attention import Heads, attend, bare
from torch import nn
from torch.nn import functional


class Packed(Heads):
    """One linear for all three; the order and the layout of its rows are a subclass's."""

    order = (0, 1, 2)
    name, output = "qkv", "proj"

    def store(self):
        setattr(self, self.name, nn.Linear(self.d, 3 * self.d))
        setattr(self, self.output, nn.Linear(self.d, self.d))

    def rows(self, stored):
        return stored.unflatten(0, (3, -1))

    def project(self, *inputs):
        linear = getattr(self, self.name)
        weights, biases = self.rows(linear.weight), self.rows(linear.bias)
        return [
            functional.linear(x, weights[i], biases[i])
            for i, x in zip(self.order, inputs, strict=True)
        ]

    def out(self, x):
        return getattr(self, self.output)(x)


class OneGpt(Packed):
    name, output = "c_attn", "c_proj"


class ValueFirst(Packed):
    name, order = "pack", (2, 1, 0)


class SaidInItsName(Packed):
    name, order = "kqv", (1, 0, 2)


class InterleavedByHead(Packed):
    name, output = "query_key_value", "dense"

    def rows(self, stored):
        return stored.unflatten(0, (self.h, 3, self.e)).transpose(0, 1).flatten(1, 2)


class InterleavedByColumn(Packed):
    def rows(self, stored):
        return stored.unflatten(0, (self.h * self.e, 3)).transpose(0, 1)


class OneHeadPacked(Packed):
    """A single head: blocks and columns by head are the same."""

    def store(self):
        if self.h != 1:
            raise ValueError(f"{self.h} heads, and only one is supported")
        super().store()


class KeysWithValues(Heads):
    def store(self):
        self.to_q = nn.Linear(self.d, self.d, bias=False)
        self.to_kv = nn.Linear(self.d, 2 * self.d, bias=False)
        self.to_out = nn.Sequential(nn.Linear(self.d, self.d, bias=False), nn.Dropout(0.0))

    def project(self, q, k, v):
        keys, values = self.to_kv.weight.chunk(2)
        return self.to_q(q), functional.linear(k, keys), functional.linear(v, values)

    def out(self, x):
        return self.to_out(x)


class TurnedLinear(nn.Module):
    """A linear map stored as (in, out)."""

    def __init__(self, out, into):
        super().__init__()
        self.weight = bare(into, out)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x):
        return x @ self.weight + self.bias


class TurnedPacked(Packed):
    name, output = "c_attn", "c_proj"

    def store(self):
        self.c_attn = TurnedLinear(3 * self.d, self.d)
        self.c_proj = TurnedLinear(self.d, self.d)

    def project(self, *inputs):
        weights, biases = self.c_attn.weight.chunk(3, dim=1), self.c_attn.bias.chunk(3)
        return [x @ w + b for x, w, b in zip(inputs, weights, biases, strict=True)]


class OneHead(nn.Module):
    def __init__(self, d, e):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d, e, bias=False) for _ in range(3))

    def forward(self, q, k, v, mask):
        return attend(self.query(q), self.key(k), self.value(v), mask)


class ListOfHeads(Heads):
    def store(self):
        self.heads = nn.ModuleList(OneHead(self.d, self.e) for _ in range(self.h))
        self.proj = nn.Linear(self.d, self.d, bias=False)

    def forward(self, q, k, v, mask=None):
        masks = [None] * self.h if mask is None else self.masks(mask)
        return self.proj(
            torch.cat([one(q, k, v, m) for one, m in zip(self.heads, masks, strict=True)], -1)
        )

    def masks(self, mask):
        return mask.expand(-1, self.h, -1, -1).unbind(1)


class RawSquare(Heads):
    """Bare matrices for x @ W, with biases beside them."""

    def store(self):
        for one in "QKVO":
            setattr(self, f"W_{one}", bare(self.d, self.d))
            setattr(self, f"b_{one}", nn.Parameter(torch.zeros(self.d)))

    def project(self, q, k, v):
        return q @ self.W_Q + self.b_Q, k @ self.W_K + self.b_K, v @ self.W_V + self.b_V

    def out(self, x):
        return x @ self.W_O + self.b_O


class RawRows(Heads):
    """Bare matrices as (out, in)."""

    def store(self):
        self.wq, self.wk, self.wv, self.wo = (bare(self.d, self.d) for _ in range(4))

    def project(self, q, k, v):
        return (
            functional.linear(q, self.wq),
            functional.linear(k, self.wk),
            functional.linear(v, self.wv),
        )

    def out(self, x):
        return functional.linear(x, self.wo)


class RawList(Heads):
    def store(self):
        self.weights = nn.ParameterList([bare(self.d, self.d) for _ in range(4)])
        self.biases = nn.ParameterList([torch.zeros(self.d) for _ in range(4)])

    def project(self, *inputs):
        return [x @ self.weights[i] + self.biases[i] for i, x in enumerate(inputs)]

    def out(self, x):
        return x @ self.weights[3] + self.biases[3]


class RawHeads(Heads):
    def store(self):
        self.w_q, self.w_k, self.w_v = (bare(self.h, self.d, self.e) for _ in range(3))
        self.b_q, self.b_k, self.b_v = (bare(self.h, 1, self.e) for _ in range(3))
        self.w_o = bare(self.h, self.e, self.d)
        self.b_o = bare(self.d)

    def forward(self, q, k, v, mask=None):
        q = torch.einsum("bld,hde->bhle", q, self.w_q) + self.b_q
        k = torch.einsum("bld,hde->bhle", k, self.w_k) + self.b_k
        v = torch.einsum("bld,hde->bhle", v, self.w_v) + self.b_v
        return torch.einsum("bhle,hed->bld", attend(q, k, v, mask), self.w_o) + self.b_o


class RawPacked(Heads):
    def store(self):
        self.qkv = bare(3, self.d, self.h, self.e)
        self.out = bare(self.h, self.e, self.d)

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            torch.einsum("bld,dhe->bhle", x, w) for x, w in zip((q, k, v), self.qkv, strict=True)
        )
        return torch.einsum("bhle,hed->bld", attend(q, k, v, mask), self.out)


SOUND = (
    Packed,
    OneGpt,
    ValueFirst,
    SaidInItsName,
    InterleavedByHead,
    InterleavedByColumn,
    KeysWithValues,
    TurnedPacked,
    ListOfHeads,
    RawSquare,
    RawRows,
    RawList,
    RawHeads,
    RawPacked,
)
