"""Attention with a trained number for each bucket of distances, as in T5."""

import pytest
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear

ATTENTION = """
    import math

    import torch
    from torch import nn


    class MultiHeadAttention(nn.Module):
        def __init__(self, d_model, num_heads, num_buckets=32, max_distance=128):
            super().__init__()
            self.h, self.width = num_heads, d_model // num_heads
            self.buckets, self.distance = num_buckets, max_distance
            self.q, self.k, self.v, self.o = (
                nn.Linear(d_model, d_model, bias=False) for _ in range(4)
            )
            self.relative_attention_bias = nn.Embedding(self.buckets, num_heads)

        def bucket(self, ahead):
            n = self.buckets // 2
            first = (ahead > 0).long() * n
            far = ahead.abs()
            near = n // 2
            steps = torch.log(far.double() / near) / math.log(self.distance / near) * (n - near)
            later = (near + steps.clamp(min=0).long()).clamp(max=n - 1)
            return first + torch.where(far < near, far, later)

        def forward(self, x, mask=None):
            b, t, _ = x.shape
            q, k, v = (
                one(x).view(b, t, self.h, self.width).transpose(1, 2)
                for one in (self.q, self.k, self.v)
            )
            place = torch.arange(t)
            bias = self.relative_attention_bias(self.bucket(place[None, :] - place[:, None]))
            scores = q @ k.transpose(-1, -2) + bias.permute(2, 0, 1)
            if mask is not None:
                scores = scores.masked_fill(mask == 0, float("-inf"))
            return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))
"""
CLAUSES = ["multi_head_attention.formula", "multi_head_attention.relative-bias"]
SCALED = ("k.transpose(-1, -2) +", "k.transpose(-1, -2) / math.sqrt(self.width) +")
MERGED = (".transpose(1, 2).reshape(b, t, -1)", ".reshape(b, t, -1)")
BACKWARDS = ("place[None, :] - place[:, None]", "place[:, None] - place[None, :]")
FIXED = (
    "self.buckets, self.distance = num_buckets, max_distance",
    "self.buckets, self.distance = 32, 128",
)


def checked(folder, old="", new="", **settled):
    assert old in ATTENTION
    text = ATTENTION.replace(old, new) if old else ATTENTION
    if (old, new) == FIXED:
        text = text.replace(", num_buckets=32, max_distance=128", "")
    folder = write_files(folder, buckets=text)
    target = str(folder / "buckets.py:MultiHeadAttention")
    return attentest.check(target, clauses=CLAUSES, **settled)


def test_buckets_without_a_scale_are_judged_and_the_scale_is_assumed(tmp_path):
    report = checked(tmp_path)
    assert report.conforms, str(report)
    said = " ".join(str(report).split())
    assert "relative_bias=buckets (none), score_scale=1 (inverse-sqrt-e)" in said


def test_buckets_with_a_scale_are_judged(tmp_path):
    report = checked(tmp_path, *SCALED)
    assert report.conforms, str(report)
    assert "score_scale" not in str(report)


def test_a_mistake_in_such_attention_is_a_violation(tmp_path):
    assert not checked(tmp_path, *MERGED).conforms


def test_distances_of_the_other_sign_do_not_conform(tmp_path):
    try:
        report = checked(tmp_path, *BACKWARDS)
    except Unclear:
        return
    assert not report.conforms


def test_a_constant_number_of_buckets_is_a_question(tmp_path):
    with pytest.raises(Unclear, match="the number of buckets and the greatest distance"):
        checked(tmp_path, *FIXED)
