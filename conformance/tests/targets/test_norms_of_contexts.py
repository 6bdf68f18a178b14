"""Norms before a part that may have a second norm, of a context: one is judged without it."""

from mistaken_code import adapted, broken

NORM = """
import torch
from torch import nn


class PreNorm(nn.Module):
    def __init__(self, dim, fn, context_dim=None):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.norm_context = None if context_dim is None else nn.LayerNorm(context_dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        if self.norm_context is not None:
            kwargs["context"] = self.norm_context(kwargs["context"])
        return self.fn(self.norm(x), **kwargs)
"""
CLAUSES = ("layer_norm.formula", "layer_norm.parameters-trained")


def test_norm_of_a_context_is_left_out_by_default(tmp_path):
    assert not broken(adapted(tmp_path, "PreNorm", NORM), *CLAUSES)


def test_second_norm_that_is_always_made_is_detected(tmp_path):
    made = NORM.replace("None if context_dim is None else nn.LayerNorm(context_dim)", "None")
    made = made.replace("self.fn = fn", "self.other, self.fn = nn.LayerNorm(dim), fn")
    assert broken(adapted(tmp_path, "PreNorm", made), CLAUSES[1])
