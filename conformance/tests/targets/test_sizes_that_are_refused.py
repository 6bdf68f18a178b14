"""Classes that refuse an optional size unless another argument is given with it."""

from mistaken_code import adapted, asked_or_broken, broken

ATTENTION = """
from torch import nn


class MultiheadAttention(nn.Module):
    def __init__(self, *, d_embedding, n_heads, dropout, n_tokens=None, ratio=None):
        if n_tokens is not None and ratio is None:
            raise ValueError("n_tokens must be None where ratio is")
        super().__init__()
        self.W_q, self.W_k = (
            nn.Linear(d_embedding, d_embedding) for _ in range(2)
        )
        self.W_v, self.W_o = (
            nn.Linear(d_embedding, d_embedding) for _ in range(2)
        )
        self.heads, self.dropout = n_heads, nn.Dropout(dropout)

    def forward(self, x_q, x_kv):
        q, k, v = self.W_q(x_q), self.W_k(x_kv), self.W_v(x_kv)
        q, k, v = (x.unflatten(-1, (self.heads, -1)).transpose(1, 2) for x in (q, k, v))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.W_o((self.dropout(weights) @ v).transpose(1, 2).flatten(2))
"""


def test_an_optional_size_that_is_refused_is_left_out(tmp_path):
    backend = adapted(tmp_path, "MultiheadAttention", ATTENTION)
    assert not broken(backend, "multi_head_attention.formula")


def test_a_mistake_in_such_a_class_is_detected_or_asked_about(tmp_path):
    clause = "multi_head_attention.formula"
    right, wrong = "q.shape[-1] ** 0.5", "k.shape[-2] ** 0.5"
    assert asked_or_broken(tmp_path, "MultiheadAttention", ATTENTION, right, wrong, clause)
