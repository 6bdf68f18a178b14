"""A decoder-only language model that hides later positions itself, and takes a mask of padding."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size)
        self.k_proj = nn.Linear(hidden_size, hidden_size)
        self.v_proj = nn.Linear(hidden_size, hidden_size)
        self.out_proj = nn.Linear(hidden_size, hidden_size)
        self.norm1 = nn.LayerNorm(hidden_size)
        self.fc1 = nn.Linear(hidden_size, intermediate_size)
        self.fc2 = nn.Linear(intermediate_size, hidden_size)
        self.norm2 = nn.LayerNorm(hidden_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, visible):
        h = self.norm1(x)
        q, k, v = (
            part(h).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~visible, -1e9)
        x = x + self.dropout(self.out_proj((scores.softmax(-1) @ v).transpose(1, 2).flatten(2)))
        return x + self.dropout(self.fc2(self.fc1(self.norm2(x)).relu()))


class TinyForCausalLM(nn.Module):
    def __init__(
        self,
        vocab_size,
        embedding_size=32,
        hidden_size=32,
        num_heads=4,
        intermediate_size=64,
        num_layers=2,
        max_position_embeddings=64,
        dropout=0.1,
    ):
        super().__init__()
        assert embedding_size == hidden_size
        self.tokens = nn.Embedding(vocab_size, embedding_size)
        self.places = nn.Embedding(max_position_embeddings, embedding_size)
        sizes = hidden_size, num_heads, intermediate_size, dropout
        self.blocks = nn.ModuleList(Block(*sizes) for _ in range(num_layers))
        self.norm = nn.LayerNorm(hidden_size)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids, attention_mask=None):
        size = input_ids.shape[1]
        visible = torch.ones(size, size, dtype=torch.bool).tril()
        if attention_mask is not None:
            visible = visible & attention_mask[:, None, None, :].bool()
        x = self.tokens(input_ids) + self.places(torch.arange(size))
        for block in self.blocks:
            x = block(x, visible)
        return self.lm_head(self.norm(x))
