"""A model built with settings and two vocabularies, whose sides and output share one table."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        rows = config.n_head * config.d_head
        self.w_q, self.w_k = nn.Linear(config.d_hidn, rows), nn.Linear(config.d_hidn, rows)
        self.w_v, self.w_o = nn.Linear(config.d_hidn, rows), nn.Linear(rows, config.d_hidn)

    def forward(self, x, context, hidden):
        parts = [
            one.unflatten(-1, (self.config.n_head, -1)).transpose(1, 2)
            for one in (self.w_q(x), self.w_k(context), self.w_v(context))
        ]
        scores = parts[0] @ parts[1].mT * self.config.d_head**-0.5
        seen = scores.masked_fill(hidden[:, None], float("-inf")).softmax(-1) @ parts[2]
        return self.w_o(seen.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config, attentions):
        super().__init__()
        eps = config.layer_norm_epsilon
        self.attentions = nn.ModuleList(Attention(config) for _ in range(attentions))
        self.wide = nn.Linear(config.d_hidn, 4 * config.d_hidn)
        self.narrow = nn.Linear(4 * config.d_hidn, config.d_hidn)
        self.norms = nn.ModuleList(
            nn.LayerNorm(config.d_hidn, eps=eps) for _ in range(attentions + 1)
        )

    def forward(self, x, contexts, hidden):
        for attention, norm, context, mask in zip(
            self.attentions, self.norms, contexts, hidden, strict=False
        ):
            x = norm(x + attention(x, x if context is None else context, mask))
        return self.norms[-1](x + self.narrow(torch.nn.functional.gelu(self.wide(x))))


class TranslationModel(nn.Module):
    def __init__(self, config, n_src_vocab, n_trg_vocab):
        super().__init__()
        self.config = config
        self.src_emb = nn.Embedding(n_src_vocab, config.d_hidn)
        self.trg_emb = nn.Embedding(n_trg_vocab, config.d_hidn)
        self.src_pos = nn.Embedding(config.n_seq, config.d_hidn)
        self.trg_pos = nn.Embedding(config.n_seq, config.d_hidn)
        self.encoder = nn.ModuleList(Block(config, 1) for _ in range(config.n_layer))
        self.decoder = nn.ModuleList(Block(config, 2) for _ in range(config.n_layer))
        self.out = nn.Linear(config.d_hidn, n_trg_vocab, bias=False)
        assert n_src_vocab == n_trg_vocab, "one table is shared"
        self.trg_emb.weight = self.src_emb.weight
        self.out.weight = self.trg_emb.weight

    def forward(self, enc_inputs, dec_inputs):
        pad = self.config.i_pad
        blank = enc_inputs.eq(pad)[:, None]
        steps = torch.arange(dec_inputs.size(1))
        later = (steps > steps[:, None]) | dec_inputs.eq(pad)[:, None]
        memory = self.src_emb(enc_inputs) + self.src_pos.weight[: enc_inputs.size(1)]
        for block in self.encoder:
            memory = block(memory, [None], [blank])
        x = self.trg_emb(dec_inputs) + self.trg_pos.weight[: dec_inputs.size(1)]
        for block in self.decoder:
            x = block(x, [None, memory], [later, blank])
        return self.out(x)
