import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.dim, self.base = dim, base
        self.seq_len_cached = 0
        self.key = None

    def _update(self, x, seq_len):
        key = (x.dtype, x.device)
        if seq_len > self.seq_len_cached or key != self.key:
            self.seq_len_cached, self.key = seq_len, key
            inv = 1.0 / (
                self.base ** (torch.arange(0, self.dim, 2, device=x.device).float() / self.dim)
            )
            freqs = torch.outer(torch.arange(seq_len, device=x.device).float(), inv)
            emb = torch.cat((freqs, freqs), dim=-1)
            self.register_buffer("cos_cached", emb.cos().to(x.dtype), persistent=False)
            self.register_buffer("sin_cached", emb.sin().to(x.dtype), persistent=False)

    def forward(self, x, seq_dim=-2):
        seq_len = x.shape[seq_dim]
        self._update(x, seq_len)
        cos, sin = self.cos_cached[:seq_len], self.sin_cached[:seq_len]
        x1, x2 = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-x2, x1), dim=-1) * sin
