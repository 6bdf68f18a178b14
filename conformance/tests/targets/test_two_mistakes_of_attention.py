"""Attention with two mistakes at once, which are those of no design: both are named."""

import pytest
from mistaken_code import adapted, broken, edited
from plain_gpt import PLAIN_GPT
from proof import share

OVER_QUERIES = ("scores.softmax(-1)", "scores.softmax(-2)")
ALL_SEEN = ('        scores = scores.masked_fill(later, float("-inf"))\n', "")


@share(2, rest=1)
@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (("/ q.shape[-1] ** 0.5", "/ width**0.5"), "divided by sqrt(d_model)"),
        (("/ q.shape[-1] ** 0.5", ""), "not divided by sqrt(d_k)"),
    ],
)
@pytest.mark.parametrize(
    ("other", "also"),
    [(OVER_QUERIES, "softmax over the queries"), (ALL_SEEN, "later tokens are not hidden")],
)
def test_both_mistakes_are_named_and_reported(tmp_path, scale, words, other, also):
    backend = adapted(tmp_path, "GPT", edited(PLAIN_GPT, scale, other))
    said = "\n".join(backend.assumed)
    assert words in said
    assert also in said
    assert broken(backend, "language_model.formula")
