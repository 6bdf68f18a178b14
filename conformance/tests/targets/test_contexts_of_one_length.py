"""Attention to a context that has to be as long as the queries."""

import pytest
from mistaken_code import adapted

CROSS = """
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.width = num_heads, d_model // num_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, context):
        b, n, d = x.shape
        q = self.query(x).reshape(b, n, self.heads, self.width).transpose(1, 2)
        k = self.key(context).reshape(b, m, self.heads, self.width).transpose(1, 2)
        v = self.value(context).reshape(b, m, self.heads, self.width).transpose(1, 2)
        weights = (q @ k.mT / self.width**0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(b, n, d))
"""


@pytest.mark.parametrize(("length", "fails"), [("context.shape[1]", False), ("n", True)])
def test_context_of_another_length_that_fails_is_reported(tmp_path, length, fails):
    source = CROSS.replace("b, m,", f"b, {length},")
    said = " ".join(adapted(tmp_path, "CrossAttention", source).assumed)
    assert ("as long as its queries" in said) == fails
