"""The attention of llama.py again, with one mistake."""

import llama
from torch import Tensor
from torch.nn import functional


class Attention(llama.Attention):
    """Causal attention whose heads share keys and values in groups."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x (batch, length, dim) after attention."""
        q = llama.rotate(self.wq(x).unflatten(-1, (self.heads, -1)).transpose(1, 2))
        k = llama.rotate(self.wk(x).unflatten(-1, (self.groups, -1)).transpose(1, 2))
        v = self.wv(x).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        k = k.repeat(1, self.heads // self.groups, 1, 1)
        v = v.repeat(1, self.heads // self.groups, 1, 1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))
