"""Sound multi-head attentions in the styles that people publish, and twins with a mistake."""

import torch
from torch import nn

from attentest_spec import Sizes


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def attend(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v


def bare(*shape):
    return nn.Parameter(torch.randn(*shape) / shape[-1] ** 0.5)


class Heads(nn.Module):
    """Common part of all styles; a style says how it is stored and how it projects."""

    def __init__(self, sizes: Sizes):
        super().__init__()
        if sizes.d_model % sizes.heads:
            raise ValueError(f"{sizes.d_model} is no multiple of {sizes.heads}")
        self.h, self.d, self.e = sizes.heads, sizes.d_model, sizes.d_model // sizes.heads
        self.store()

    def forward(self, q, k, v, mask=None):
        q, k, v = (split(one, self.h) for one in self.project(q, k, v))
        return self.out(merge(attend(q, k, v, mask)))


class FourLinears(Heads):
    def store(self):
        self.linears = nn.ModuleList(nn.Linear(self.d, self.d) for _ in range(4))

    def project(self, *inputs):
        return [linear(x) for linear, x in zip(self.linears[:3], inputs, strict=True)]

    def out(self, x):
        return self.linears[3](x)


class OutputFirst(FourLinears):
    """The list in another order: output, value, key, query."""

    def project(self, *inputs):
        return [self.linears[3 - i](x) for i, x in enumerate(inputs)]

    def out(self, x):
        return self.linears[0](x)


class NamedLinears(Heads):
    def store(self):
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(self.d, self.d, bias=False))

    def project(self, q, k, v):
        return self.q_proj(q), self.k_proj(k), self.v_proj(v)

    def out(self, x):
        return self.out_proj(x)


class QueryAndKeySwapped(NamedLinears):
    def project(self, q, k, v):
        return self.k_proj(q), self.q_proj(k), self.v_proj(v)


class KeyForValue(NamedLinears):
    def project(self, q, k, v):
        return self.q_proj(q), self.k_proj(k), self.k_proj(v)


class WrongMerge(NamedLinears):
    def forward(self, q, k, v, mask=None):
        q, k, v = (split(one, self.h) for one in self.project(q, k, v))
        context = attend(q, k, v, mask).transpose(1, 2)
        return self.out(context.transpose(2, 3).flatten(2))


class ListWithoutScale(FourLinears):
    """Weak names and a mistake: nothing reproduces the numbers."""

    def forward(self, q, k, v, mask=None):
        return super().forward(q * self.e**0.5, k, v, mask)


class Unlabelled(Heads):
    """Attributes that say nothing, in an order of their own."""

    def store(self):
        self.a, self.b, self.c, self.m = (nn.Linear(self.d, self.d) for _ in range(4))

    def project(self, q, k, v):
        return self.c(q), self.m(k), self.a(v)

    def out(self, x):
        return self.b(x)


class NestedNames(Heads):
    def store(self):
        for name in ("query", "key", "value"):
            setattr(self, name, nn.ModuleDict({"linear": nn.Linear(self.d, self.d)}))
        self.output = nn.Linear(self.d, self.d)

    def project(self, q, k, v):
        return self.query["linear"](q), self.key["linear"](k), self.value["linear"](v)

    def out(self, x):
        return self.output(x)


class GluedNames(Heads):
    def store(self):
        for name in ("toqueries", "tokeys", "tovalues", "unifyheads"):
            setattr(self, name, nn.Linear(self.d, self.d))

    def project(self, q, k, v):
        return self.toqueries(q), self.tokeys(k), self.tovalues(v)

    def out(self, x):
        return self.unifyheads(x)


class Plural(Heads):
    def store(self):
        self.w_qs, self.w_ks, self.w_vs = (nn.Linear(self.d, self.d) for _ in range(3))
        self.fc = nn.Linear(self.d, self.d)

    def project(self, q, k, v):
        return self.w_qs(q), self.w_ks(k), self.w_vs(v)

    def out(self, x):
        return self.fc(x)


class WideHeads(Heads):
    """Heads as wide as the model."""

    def store(self):
        self.query, self.key, self.value = (nn.Linear(self.d, self.h * self.d) for _ in range(3))
        self.project_back = nn.Linear(self.h * self.d, self.d)
        self.register_buffer("scale", torch.ones(self.d, self.d))

    def project(self, q, k, v):
        return self.query(q), self.key(k), self.value(v)

    def out(self, x):
        return self.project_back(x)


def library(sizes):
    return nn.MultiheadAttention(sizes.d_model, sizes.heads, batch_first=True)


def call_library(built, query, key, value, mask):
    if mask is not None:
        heads, queries = built.num_heads, query.size(1)
        mask = (~mask).expand(query.size(0), heads, queries, mask.size(-1)).flatten(0, 1)
    return built(query, key, value, attn_mask=mask)


SOUND = (
    FourLinears,
    OutputFirst,
    NamedLinears,
    Unlabelled,
    NestedNames,
    GluedNames,
    Plural,
    WideHeads,
)
