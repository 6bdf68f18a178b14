"""Lines of projections with the weights of another one, where queries and keys are one input."""

from pathlib import Path

import pytest
from mistaken_code import adapted, edited

from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status

CODE = """
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.scale = heads, (d_model // heads) ** -0.5
        self.w_q, self.w_k = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.w_v, self.w_o = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        b = len(x)
        q = self.w_q(x).view(b, -1, self.heads, x.shape[-1] // self.heads).transpose(1, 2)
        k = self.w_k(x).view(b, -1, self.heads, x.shape[-1] // self.heads).permute(0, 2, 3, 1)
        v = self.w_v(x).view(b, -1, self.heads, x.shape[-1] // self.heads).transpose(1, 2)
        scores = q @ k * self.scale
        mixed = scores.softmax(-1) @ v
        return self.w_o(mixed.transpose(1, 2).flatten(2))
"""


@pytest.mark.parametrize(
    ("own", "other"), [("query", "key"), ("key", "query"), ("query", "value"), ("value", "key")]
)
def test_the_projection_that_uses_other_weights_is_named(
    tmp_path: Path, own: str, other: str
) -> None:
    code = edited(CODE, (f"self.w_{own[0]}(x)", f"self.w_{other[0]}(x)"))
    backend = adapted(tmp_path, "MultiHeadAttention", code)
    verdict = judge(Bench(backend, shrink=False), "multi_head_attention.formula")
    assert verdict.status is Status.VIOLATION
    assert verdict.location is not None
    assert verdict.location.code.startswith(f"{own[0]} = self.w_{other[0]}(x)")
    assert f"weights of {other}" in verdict.location.computed
    assert verdict.location.confirmed
