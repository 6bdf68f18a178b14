"""Encoder and decoder layers and stacks in unlike styles."""

import torch
from styles_of_attention import FourLinears, Heads, NamedLinears, attend, bare, merge, split
from styles_of_parts import BackToFront, Bare, Lettered, Norm, Numbered, Turned, in_a_row
from styles_of_storage import ListOfHeads, OneGpt, Packed, TurnedPacked
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """The naming of a vision library, norm first."""

    def __init__(self, sizes):
        super().__init__()
        self.norm1 = nn.LayerNorm(sizes.d_model)
        self.attn = Packed(sizes)
        self.norm2 = nn.LayerNorm(sizes.d_model)
        self.mlp = Numbered(sizes)

    def forward(self, x, mask=None):
        inner = self.norm1(x)
        x = x + self.attn(inner, inner, inner, mask)
        return x + self.mlp(self.norm2(x))


class NormsSwapped(Block):
    """A mistake: the norms are used against their numbers."""

    def forward(self, x, mask=None):
        inner = self.norm2(x)
        x = x + self.attn(inner, inner, inner, mask)
        return x + self.mlp(self.norm1(x))


class GptBlock(nn.Module):
    attention, network = OneGpt, Turned

    def __init__(self, sizes):
        super().__init__()
        self.ln_1, self.ln_2 = Norm(sizes), Norm(sizes)
        self.attn, self.mlp = self.attention(sizes), type(self).network(sizes)

    def forward(self, x, mask=None):
        inner = self.ln_1(x)
        x = x + self.attn(inner, inner, inner, mask)
        return x + self.mlp(self.ln_2(x))


class TurnedBlock(GptBlock):
    attention = TurnedPacked


class HeadsBlock(GptBlock):
    """A list of heads inside a layer."""

    attention, network = ListOfHeads, in_a_row


class PostLists(nn.Module):
    """Sublayers and norms in lists, norm last; the second norm of the list comes first."""

    def __init__(self, sizes):
        super().__init__()
        self.parts = nn.ModuleList([FourLinears(sizes), Bare(sizes)])
        self.norms = nn.ModuleList([Lettered(sizes), Lettered(sizes)])

    def forward(self, x, mask=None):
        x = self.norms[1](x + self.parts[0](x, x, x, mask))
        return self.norms[0](x + self.parts[1](x))


class OneNorm(nn.Module):
    """One norm for both sublayers."""

    def __init__(self, sizes):
        super().__init__()
        self.mha, self.ff = NamedLinears(sizes), BackToFront(sizes)
        self.ln = nn.LayerNorm(sizes.d_model)

    def forward(self, x, mask=None):
        x = self.ln(x + self.mha(x, x, x, mask))
        return self.ln(x + self.ff(x))


class NormInside(nn.Module):
    """A sublayer that holds its norm and its residual."""

    def __init__(self, inner, sizes):
        super().__init__()
        self.fn, self.layer_norm = inner, nn.LayerNorm(sizes.d_model)

    def forward(self, x, *rest):
        return self.layer_norm(x + self.fn(x, *rest))


class SelfContained(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.slf_attn = NormInside(FourLinears(sizes), sizes)
        self.pos_ffn = NormInside(Numbered(sizes), sizes)

    def forward(self, x, mask=None):
        return self.pos_ffn(self.slf_attn(x, x, x, mask))


class Flat(Heads):
    """Everything in one module, norms as bare vectors."""

    def __init__(self, sizes):
        self.sizes = sizes
        super().__init__(sizes)

    def store(self):
        d, wide = self.d, self.sizes.d_ff
        self.w_q, self.w_k, self.w_v, self.w_o = (bare(d, d) for _ in range(4))
        self.ln1_g, self.ln1_b = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.ln2_g, self.ln2_b = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.w_in, self.b_in = bare(d, wide), bare(wide)
        self.w_out, self.b_out = bare(wide, d), bare(d)

    def forward(self, x, mask=None):
        inner = functional.layer_norm(x, (self.d,), self.ln1_g, self.ln1_b)
        heads = [split(inner @ w, self.h) for w in (self.w_q, self.w_k, self.w_v)]
        x = x + merge(attend(*heads, mask)) @ self.w_o
        inner = functional.layer_norm(x, (self.d,), self.ln2_g, self.ln2_b)
        return x + functional.relu(inner @ self.w_in + self.b_in) @ self.w_out + self.b_out


def sized(mask, x, heads):
    if mask is None:
        return None
    return (~mask).expand(x.size(0), heads, x.size(1), mask.size(-1)).flatten(0, 1)


def library_layer(sizes):
    return nn.TransformerEncoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, sizes.dropout, batch_first=True
    )


def call_library_layer(built, x, mask):
    return built(x, src_mask=sized(mask, x, built.self_attn.num_heads))


PRE = {"norm_placement": "pre"}
ENCODER_LAYER = {
    Block: PRE,
    GptBlock: {**PRE, "activation": "gelu"},
    TurnedBlock: {**PRE, "activation": "gelu"},
    HeadsBlock: {**PRE, "activation": "gelu"},
    PostLists: {"activation": "silu"},
    OneNorm: {},
    SelfContained: {},
    Flat: PRE,
}


class LongNames(nn.Module):
    """A decoder layer named as in a translation library, norm last."""

    def __init__(self, sizes):
        super().__init__()
        self.self_attn = NamedLinears(sizes)
        self.self_attn_layer_norm = nn.LayerNorm(sizes.d_model)
        self.encoder_attn = NamedLinears(sizes)
        self.encoder_attn_layer_norm = nn.LayerNorm(sizes.d_model)
        self.fc1 = nn.Linear(sizes.d_model, sizes.d_ff)
        self.fc2 = nn.Linear(sizes.d_ff, sizes.d_model)
        self.final_layer_norm = nn.LayerNorm(sizes.d_model)

    def forward(self, x, memory, source_mask=None, target_mask=None):
        x = self.self_attn_layer_norm(x + self.self_attn(x, x, x, target_mask))
        x = self.encoder_attn_layer_norm(x + self.encoder_attn(x, memory, memory, source_mask))
        return self.final_layer_norm(x + self.fc2(functional.relu(self.fc1(x))))


class CrossBeforeSelf(LongNames):
    """A mistake: the attention to the memory comes first."""

    def forward(self, x, memory, source_mask=None, target_mask=None):
        x = self.encoder_attn_layer_norm(x + self.encoder_attn(x, memory, memory, source_mask))
        x = self.self_attn_layer_norm(x + self.self_attn(x, x, x, target_mask))
        return self.final_layer_norm(x + self.fc2(functional.relu(self.fc1(x))))


class DecoderLists(nn.Module):
    """Lists again; the attention to the memory is the first of its list."""

    def __init__(self, sizes):
        super().__init__()
        self.mixers = nn.ModuleList(FourLinears(sizes) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(sizes.d_model) for _ in range(3))
        self.net = in_a_row(sizes)

    def forward(self, x, memory, source_mask=None, target_mask=None):
        inner = self.norms[2](x)
        x = x + self.mixers[1](inner, inner, inner, target_mask)
        x = x + self.mixers[0](self.norms[1](x), memory, memory, source_mask)
        return x + self.net(self.norms[0](x))


class NumberedAttentions(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.mha1, self.mha2 = ListOfHeads(sizes), ListOfHeads(sizes)
        self.ffn = Numbered(sizes)
        self.layernorm1, self.layernorm2, self.layernorm3 = (Norm(sizes) for _ in range(3))

    def forward(self, x, memory, source_mask=None, target_mask=None):
        x = self.layernorm1(x + self.mha1(x, x, x, target_mask))
        x = self.layernorm2(x + self.mha2(x, memory, memory, source_mask))
        return self.layernorm3(x + self.ffn(x))


def library_decoder_layer(sizes):
    return nn.TransformerDecoderLayer(
        sizes.d_model, sizes.heads, sizes.d_ff, sizes.dropout, batch_first=True
    )


def call_library_decoder_layer(built, x, memory, source_mask, target_mask):
    heads = built.self_attn.num_heads
    return built(
        x,
        memory,
        tgt_mask=sized(target_mask, x, heads),
        memory_mask=sized(source_mask, x, heads),
    )


DECODER_LAYER = {LongNames: {}, DecoderLists: {**PRE, "activation": "gelu"}, NumberedAttentions: {}}
