"""Stacks of layers and whole models in unlike styles."""

import torch
from styles_of_attention import FourLinears, NamedLinears
from styles_of_layers import (
    PRE,
    Block,
    HeadsBlock,
    LongNames,
    NumberedAttentions,
    SelfContained,
)
from styles_of_parts import BarePositions, Norm, Numbered, Positions
from torch import nn


class Blocks(nn.Module):
    """A stack whose layers are built by `layer`, with a final norm."""

    layer = Block

    def __init__(self, sizes):
        super().__init__()
        self.blocks = nn.ModuleList(self.layer(sizes) for _ in range(sizes.layers))
        self.ln_f = nn.LayerNorm(sizes.d_model)

    def forward(self, x, mask=None):
        for block in self.blocks:
            x = block(x, mask)
        return self.ln_f(x)


class BlocksOfHeads(Blocks):
    """Lists of heads in a list of layers."""

    layer = HeadsBlock


class Attributes(nn.Module):
    """Layers that are numbered attributes, and no final norm."""

    def __init__(self, sizes):
        super().__init__()
        self.count = sizes.layers
        for number in range(sizes.layers):
            setattr(self, f"layer_{number}", SelfContained(sizes))

    def forward(self, x, mask=None):
        for number in range(self.count):
            x = getattr(self, f"layer_{number}")(x, mask)
        return x


class LayersSwapped(Blocks):
    """A mistake: the layers are applied from the last to the first."""

    def forward(self, x, mask=None):
        for block in reversed(self.blocks):
            x = block(x, mask)
        return self.ln_f(x)


ENCODER = {Blocks: PRE, BlocksOfHeads: {**PRE, "activation": "gelu"}, Attributes: {}}


class DecoderStack(nn.Module):
    layer = LongNames

    def __init__(self, sizes):
        super().__init__()
        self.layer_stack = nn.ModuleList(self.layer(sizes) for _ in range(sizes.layers))

    def forward(self, x, memory, source_mask=None, target_mask=None):
        for layer in self.layer_stack:
            x = layer(x, memory, source_mask, target_mask)
        return x


class DecoderOfHeads(DecoderStack):
    layer = NumberedAttentions


DECODER = {DecoderStack: {}, DecoderOfHeads: {}}


class PostLayer(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.self_attention, self.ffn = NamedLinears(sizes), Numbered(sizes)
        self.attention_norm, self.ffn_norm = Norm(sizes), Norm(sizes)

    def forward(self, x, mask=None):
        x = self.attention_norm(x + self.self_attention(x, x, x, mask))
        return self.ffn_norm(x + self.ffn(x))


class PreLayer(LongNames):
    def __init__(self, sizes):
        super().__init__(sizes)
        self.self_attn, self.encoder_attn = FourLinears(sizes), FourLinears(sizes)

    def forward(self, x, memory, source_mask=None, target_mask=None):
        inner = self.self_attn_layer_norm(x)
        x = x + self.self_attn(inner, inner, inner, target_mask)
        inner = self.encoder_attn_layer_norm(x)
        x = x + self.encoder_attn(inner, memory, memory, source_mask)
        return x + self.fc2(self.fc1(self.final_layer_norm(x)).relu())


class Translator(nn.Module):
    """Tables, learned positions, two lists of layers, and a linear map at the end."""

    positions, layers = Positions, (PostLayer, NumberedAttentions)

    def __init__(self, sizes):
        super().__init__()
        self.pads = sizes.source_pad, sizes.target_pad
        encoder, decoder = self.layers
        self.enc_layers = nn.ModuleList(encoder(sizes) for _ in range(sizes.layers))
        self.dec_layers = nn.ModuleList(decoder(sizes) for _ in range(sizes.layers))
        self.tables(sizes)
        self.pos_enc, self.pos_dec = self.positions(sizes), self.positions(sizes)

    def tables(self, sizes):
        self.fc_out = nn.Linear(sizes.d_model, sizes.target_vocabulary)
        self.tgt_embed = nn.Embedding(sizes.target_vocabulary, sizes.d_model)
        self.src_embed = nn.Embedding(sizes.source_vocabulary, sizes.d_model)

    def encode(self, source):
        x = self.pos_enc(self.src_embed(source))
        keep = (source != self.pads[0])[:, None, None, :]
        for layer in self.enc_layers:
            x = layer(x, keep)
        return x

    def decode(self, target, memory, source):
        x = self.pos_dec(self.tgt_embed(target))
        length = target.size(1)
        past = torch.ones(length, length, dtype=torch.bool, device=target.device).tril()
        keep = (target != self.pads[1])[:, None, None, :] & past
        for layer in self.dec_layers:
            x = layer(x, memory, (source != self.pads[0])[:, None, None, :], keep)
        return self.generate(x)

    def generate(self, x):
        return self.fc_out(x)

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


class PreTranslator(Translator):
    """Separate norms first, a final norm on each side, one table for all, raw positions."""

    positions, layers = BarePositions, (Block, PreLayer)

    def __init__(self, sizes):
        if sizes.source_vocabulary != sizes.target_vocabulary:
            raise ValueError("one table serves both sides, so the vocabularies must be equal")
        super().__init__(sizes)
        self.norm_a, self.norm_b = Norm(sizes), Norm(sizes)

    def tables(self, sizes):
        self.src_embed = self.tgt_embed = nn.Embedding(sizes.source_vocabulary, sizes.d_model)
        self.fc_out = nn.Linear(sizes.d_model, sizes.target_vocabulary)
        self.fc_out.weight = self.src_embed.weight

    def encode(self, source):
        return self.norm_b(super().encode(source))

    def generate(self, x):
        return self.fc_out(self.norm_a(x))
