"""Layers and stacks with the structure and the names of widely used libraries."""

import torch
from styles_of_attention import Heads, attend, bare, merge, split
from styles_of_layers import PRE
from styles_of_parts import BackToFront, in_a_row
from torch import nn
from torch.nn import functional


class Dense(nn.Module):
    """A linear map, the residual sum and the norm after it."""

    def __init__(self, into, out):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(into, out), nn.LayerNorm(out)

    def forward(self, inner, x):
        return self.LayerNorm(self.dense(inner) + x)


class HeadsAlone(nn.Module):
    """Attention up to the merge of the heads."""

    def __init__(self, sizes):
        super().__init__()
        self.h = sizes.heads
        for name in ("query", "key", "value"):
            setattr(self, name, nn.Linear(sizes.d_model, sizes.d_model))

    def forward(self, x, mask):
        heads = [split(one(x), self.h) for one in (self.query, self.key, self.value)]
        return merge(attend(*heads, mask))


class Bidirectional(nn.Module):
    """The output projection and the norm share a module, and so do outer map and norm."""

    def __init__(self, sizes):
        super().__init__()
        self.attention = nn.ModuleDict(
            {"self": HeadsAlone(sizes), "output": Dense(sizes.d_model, sizes.d_model)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(sizes.d_model, sizes.d_ff)})
        self.output = Dense(sizes.d_ff, sizes.d_model)

    def forward(self, x, mask=None):
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(functional.gelu(self.intermediate["dense"](x)), x)


class OneLetter(Heads):
    def store(self):
        for name in "qkvo":
            setattr(self, name, nn.Linear(self.d, self.d, bias=False))

    def project(self, q, k, v):
        return self.q(q), self.k(k), self.v(v)

    def out(self, x):
        return self.o(x)


class InputAndPost(nn.Module):
    """Norm first, and the norm named after the attention is the one before the network."""

    def __init__(self, sizes):
        super().__init__()
        self.self_attn, self.mlp = OneLetter(sizes), BackToFront(sizes)
        self.post_attention_layernorm = nn.LayerNorm(sizes.d_model)
        self.input_layernorm = nn.LayerNorm(sizes.d_model)

    def forward(self, x, mask=None):
        inner = self.input_layernorm(x)
        x = x + self.self_attn(inner, inner, inner, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class NormFirst(nn.Module):
    def __init__(self, sizes, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(sizes.d_model), fn

    def forward(self, x, *rest):
        return self.fn(self.norm(x), *rest) + x


class OneInput(nn.Module):
    """Attention of a sequence to itself, by one input."""

    def __init__(self, sizes):
        super().__init__()
        self.h = sizes.heads
        self.to_qkv = nn.Linear(sizes.d_model, 3 * sizes.d_model, bias=False)
        self.to_out = nn.Sequential(
            nn.Linear(sizes.d_model, sizes.d_model, bias=False), nn.Dropout(0.0)
        )

    def forward(self, x, mask=None):
        heads = [split(one, self.h) for one in self.to_qkv(x).chunk(3, dim=-1)]
        return self.to_out(merge(attend(*heads, mask)))


class ListsOfLists(nn.Module):
    """A stack of lists of wrapped sublayers."""

    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([NormFirst(sizes, OneInput(sizes)), NormFirst(sizes, in_a_row(sizes))])
            for _ in range(sizes.layers)
        )
        self.norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x, mask=None):
        for attention, network in self.layers:
            x = network(attention(x, mask))
        return self.norm(x)


class Wrapped(nn.Module):
    def __init__(self, sizes, name, inner):
        super().__init__()
        self.name = name
        setattr(self, name, inner)
        self.layer_norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x, memory=None, mask=None):
        inner = self.layer_norm(x)
        if self.name == "DenseReluDense":
            return x + self.DenseReluDense(inner)
        memory = inner if memory is None else memory
        return x + getattr(self, self.name)(inner, memory, memory, mask)


class TextToText(nn.Module):
    """A decoder layer that is a list of three sublayers, told apart by their attributes."""

    def __init__(self, sizes):
        super().__init__()
        self.layer = nn.ModuleList(
            [
                Wrapped(sizes, "SelfAttention", OneLetter(sizes)),
                Wrapped(sizes, "EncDecAttention", OneLetter(sizes)),
                Wrapped(sizes, "DenseReluDense", BackToFront(sizes)),
            ]
        )

    def forward(self, x, memory, source_mask=None, target_mask=None):
        x = self.layer[0](x, None, target_mask)
        return self.layer[2](self.layer[1](x, memory, source_mask))


class FlatDecoder(nn.Module):
    """Everything in one module, told apart by the beginning of the names."""

    def __init__(self, sizes):
        super().__init__()
        self.h = sizes.heads
        for name in ("self_q", "self_k", "self_v", "self_o", "cross_q", "cross_k", "cross_v"):
            setattr(self, name, nn.Linear(sizes.d_model, sizes.d_model))
        self.cross_o = nn.Linear(sizes.d_model, sizes.d_model)
        self.w1 = nn.Linear(sizes.d_model, sizes.d_ff)
        self.w2 = nn.Linear(sizes.d_ff, sizes.d_model)
        self.n1, self.n2, self.n3 = (nn.LayerNorm(sizes.d_model) for _ in range(3))

    def attend(self, kind, x, memory, mask):
        q, k, v, o = (getattr(self, f"{kind}_{one}") for one in "qkvo")
        heads = (split(one, self.h) for one in (q(x), k(memory), v(memory)))
        return o(merge(attend(*heads, mask)))

    def forward(self, x, memory, source_mask=None, target_mask=None):
        x = self.n1(x + self.attend("self", x, x, target_mask))
        x = self.n2(x + self.attend("cross", x, memory, source_mask))
        return self.n3(x + self.w2(functional.relu(self.w1(x))))


class NothingSaid(nn.Module):
    """Bare matrices in a list, and bare norms that stand in the other order: no part is called."""

    def __init__(self, sizes):
        super().__init__()
        self.h, d = sizes.heads, sizes.d_model
        self.mats = nn.ParameterList([bare(d, d) for _ in range(4)])
        for name in "pr":
            setattr(self, f"{name}_gain", nn.Parameter(torch.ones(d)))
            setattr(self, f"{name}_bias", nn.Parameter(torch.zeros(d)))
        self.net = BackToFront(sizes)

    def forward(self, x, mask=None):
        inner = functional.layer_norm(x, x.shape[-1:], self.r_gain, self.r_bias)
        heads = [split(inner @ one, self.h) for one in list(self.mats)[:3]]
        x = x + merge(attend(*heads, mask)) @ self.mats[3]
        inner = functional.layer_norm(x, x.shape[-1:], self.p_gain, self.p_bias)
        return x + self.net(inner)


LIBRARIES = {
    Bidirectional: ("encoder_layer", {"activation": "gelu"}),
    InputAndPost: ("encoder_layer", PRE),
    ListsOfLists: ("encoder", {**PRE, "activation": "gelu"}),
    TextToText: ("decoder_layer", PRE),
    FlatDecoder: ("decoder_layer", {}),
    NothingSaid: ("encoder_layer", PRE),
}
