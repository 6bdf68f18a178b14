"""Embeddings in which a negative id is a marker whose row is zeros."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken

from attentest.judging.bench import Bench
from attentest.judging.judge import judge

CLAUSE = "embedding.negative-id-refused"
CODE = """
import torch
from torch import nn


class ScaledEmbedding(nn.Embedding):
    def __init__(self, num_embeddings: int, embedding_dim: int, zero_idx: int = -1):
        super().__init__(num_embeddings, embedding_dim)
        self.zero_idx = zero_idx

    def forward(self, input):
        is_zero = input == self.zero_idx
        y = super().forward(input.clamp(min=0))
        return torch.where(is_zero[..., None], torch.zeros(1).to(y), y)
"""


def test_negative_marker_is_not_judged(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "ScaledEmbedding", CODE)
    assert backend.limits.negative_ids
    assert broken(backend, "embedding.scale", CLAUSE) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("is_zero[..., None]", "is_zero[..., None] & False"),
        ("super().forward(input.clamp(min=0))", "super().forward(input % self.num_embeddings)"),
        (
            "super().forward(input.clamp(min=0))",
            "(input[..., None] == torch.arange(self.num_embeddings)).to(self.weight) @ self.weight",
        ),
    ],
)
def test_negative_ids_that_become_others_get_a_warning(
    tmp_path: Path, right: str, wrong: str
) -> None:
    assert right in CODE
    backend = adapted(tmp_path, "ScaledEmbedding", CODE.replace(right, wrong))
    assert not backend.limits.negative_ids
    bench = Bench.for_status(backend, effort=0.2)
    assert judge(bench, CLAUSE).status == "warning"
