"""Configurations of which a field holds fields itself, by their keys."""

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited

ATTENTION = """
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, config, vis):
        super().__init__()
        self.vis = vis
        self.heads = config.transformer["num_heads"]
        self.width = config.hidden_size // self.heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.transformer["attention_dropout_rate"])

    def forward(self, hidden_states):
        b, n, _ = hidden_states.shape
        q, k, v = (
            one(hidden_states).view(b, n, self.heads, self.width).transpose(1, 2)
            for one in (self.query, self.key, self.value)
        )
        weights = (q @ k.mT / math.sqrt(self.width)).softmax(dim=-1)
        mixed = (self.dropout(weights) @ v).transpose(1, 2).reshape(b, n, -1)
        return self.out(mixed), weights if self.vis else None
"""
FORMULA = "multi_head_attention.formula"


def test_group_of_fields_is_given_as_a_dictionary(tmp_path):
    backend = adapted(tmp_path, "Attention", ATTENTION)
    assert not broken(backend, FORMULA)
    assert "vis=False" in " ".join(backend.understood)


@pytest.mark.parametrize(
    ("right", "wrong"), [("self.width)).soft", "n)).soft"), ("(dim=-1)", "(dim=-2)")]
)
def test_mistakes_in_code_with_such_a_group_are_detected(tmp_path, right, wrong):
    mistaken = edited(ATTENTION, (right, wrong))
    assert broken(adapted(tmp_path, "Attention", mistaken), FORMULA)


KEPT = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.origin = config.origin
        self.up = nn.Linear(config.d_model, config.d_ff)
        self.down = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_fields_that_are_stored_alone_need_no_value(tmp_path):
    backend = adapted(tmp_path, "FeedForward", KEPT)
    assert not [one for one in backend.assumed if "origin" in one]
    assert not broken(backend, "feed_forward.formula")
    assert asked_or_broken(
        tmp_path, "FeedForward", KEPT, ".relu()", ".relu().mean(1, True)", "feed_forward.formula"
    )
