"""Attention whose heads of keys and values are dealt out to the query heads in turn."""

import pytest
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear

ATTENTION = """
    import torch
    from torch import nn


    class GroupedQueryAttention(nn.Module):
        def __init__(self, dim, n_heads, n_kv_heads):
            super().__init__()
            self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
            self.head_dim = dim // n_heads
            self.to_q = nn.Linear(dim, dim, bias=False)
            self.to_k = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
            self.to_v = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
            self.to_o = nn.Linear(dim, dim, bias=False)

        def forward(self, x, mask=None):
            b, t, _ = x.shape
            q = self.to_q(x).view(b, t, self.n_heads, -1).transpose(1, 2)
            k = self.to_k(x).view(b, t, self.n_kv_heads, -1).transpose(1, 2)
            v = self.to_v(x).view(b, t, self.n_kv_heads, -1).transpose(1, 2)
            times = self.n_heads // self.n_kv_heads
            k, v = k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1)
            scores = q @ k.transpose(2, 3) / self.head_dim**0.5
            if mask is not None:
                scores = scores.masked_fill(mask == 0, float("-inf"))
            return self.to_o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, -1))
"""
CLAUSES = ["multi_head_attention.shared-key-heads", "multi_head_attention.formula"]


def checked(folder, text, **said):
    folder = write_files(folder, gqa=text)
    return attentest.check(str(folder / "gqa.py:GroupedQueryAttention"), clauses=CLAUSES, **said)


@pytest.mark.proof
def test_key_heads_in_turn_are_a_question_and_judged_where_it_is_said(tmp_path):
    """Query heads in another order are the formula, unless parameters come from elsewhere."""
    with pytest.raises(Unclear, match="dealt out to the query heads in turn"):
        checked(tmp_path, ATTENTION)
    assert not checked(tmp_path, ATTENTION, anyway=True).conforms


@pytest.mark.proof
@pytest.mark.parametrize("names", ["{}_proj", "w{}"])
def test_key_heads_in_turn_are_a_mistake_where_published_parameters_are_loaded(tmp_path, names):
    """Projections with the names that Llama and others publish are loaded from their files."""
    text = ATTENTION
    for one in "qkvo":
        text = text.replace(f"to_{one}", names.format(one))
    assert not checked(tmp_path, text).conforms
    right = text.replace(".repeat(1, times, 1, 1)", ".repeat_interleave(times, dim=1)")
    assert checked(tmp_path, right).conforms


@pytest.mark.proof
@pytest.mark.parametrize("one", ["k", "v"])
def test_heads_of_one_of_both_in_turn_are_a_mistake(tmp_path, one):
    old = f"{one}.repeat(1, times, 1, 1)"
    assert old in ATTENTION
    text = ATTENTION.replace(old, f"{one}.repeat_interleave(times, dim=1)")
    assert not checked(tmp_path, text).conforms


@pytest.mark.proof
@pytest.mark.parametrize("heads", ["num_q_heads", "n_heads_q"])
def test_heads_of_queries_have_names_of_their_own(tmp_path, heads):
    text = ATTENTION.replace("n_heads", heads)
    right = text.replace(".repeat(1, times, 1, 1)", ".repeat_interleave(times, dim=1)")
    assert checked(tmp_path, right).conforms
    wrong = right.replace("/ self.head_dim**0.5", "* self.head_dim**-0.5 / times")
    assert not checked(tmp_path, wrong).conforms


@pytest.mark.proof
def test_an_option_judges_as_many_key_heads_as_heads(tmp_path):
    either = "n_kv_heads=None):\n            n_kv_heads = n_kv_heads or n_heads"
    text = ATTENTION.replace("n_kv_heads):", either)
    with pytest.raises(Unclear, match="--give n_kv_heads=None judges it with as many"):
        checked(tmp_path, text)
    report = checked(tmp_path, text, given={"n_kv_heads": None})
    assert report.conforms, str(report)


@pytest.mark.proof
def test_key_heads_in_rows_conform(tmp_path):
    text = ATTENTION.replace(".repeat(1, times, 1, 1)", ".repeat_interleave(times, dim=1)")
    report = checked(tmp_path, text)
    assert report.conforms, str(report)
    assert report.compared == 2


PACKED = (
    ATTENTION.replace(
        "self.to_k = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)",
        "self.to_kv = nn.Linear(dim, 2 * n_kv_heads * self.head_dim, bias=False)",
    )
    .replace("self.to_v = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)", "")
    .replace("k = self.to_k(x)", "k, v = self.to_kv(x)")
    .replace(
        "view(b, t, self.n_kv_heads, -1).transpose(1, 2)\n            v = self.to_v(x).view(b, t, "
        "self.n_kv_heads, -1).transpose(1, 2)",
        "view(b, t, self.n_kv_heads, 2, -1).transpose(1, 2).unbind(3)",
    )
    .replace(".repeat(1, times, 1, 1)", ".repeat_interleave(times, dim=1)")
)
"""Each key head lies next to its value head, in one matrix."""


def test_a_matrix_with_the_value_head_next_to_each_key_head_is_read(tmp_path):
    assert checked(tmp_path, PACKED).conforms
    wrong = PACKED.replace("k, v = k.repeat_", "k, v = k.flip(1).repeat_")
    assert wrong != PACKED
    assert not checked(tmp_path, wrong).conforms
