"""Documentation of the scales of embeddings and scores, compared with what the numbers show."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt.advice.scale_words import demand_documented_scales
from attentest.targets.adapt.reading import Contrary, Reading, Unclear

PLAIN = {"embedding_scale": "none", "score_scale": "inverse-sqrt-e"}
SCALED = {"embedding_scale": "sqrt-d", "score_scale": "inverse-sqrt-e"}
OTHER = {"embedding_scale": "none", "score_scale": 0.25}


def _demand(words: str, measured: dict[str, object], **settled: object) -> None:
    class Documented:
        def forward(self, tokens): ...

    Documented.__doc__ = words
    demand_documented_scales("Documented", "model", Documented, measured, Reading(**settled))


CONTRARY = [
    ("Gemma in small. Embeddings are tied and scaled by sqrt(d_model) on the way in.", PLAIN),
    (
        "Embeddings are multiplied by the square root\nof the width, as in the paper",
        PLAIN,
    ),
    ("Token embeddings * sqrt(dim) plus sines.", PLAIN),
    ("The embedding table times √d_model", PLAIN),
    ("- pre-norm\n- the embeddings are not scaled, as in GPT-2", SCALED),
    ("It begins with unscaled token embeddings.", SCALED),
    ("Attention. Scores are divided by sqrt(d_model).", PLAIN),
    ("softmax of the unscaled scores, as in T5", PLAIN),
]


@pytest.mark.parametrize(("words", "choices"), CONTRARY)
def test_documented_scale_that_the_numbers_contradict_is_asked_about(words, choices):
    with pytest.raises(Contrary, match='The documentation of Documented says "'):
        _demand(words, choices)
    _demand(words, choices, choices={"embedding_scale": "none", "score_scale": 1.0})


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        ("Embeddings are scaled by sqrt(d_model).", SCALED),
        ("Embeddings are not scaled by sqrt(d_model).", PLAIN),
        (
            "The paper scales embeddings by sqrt(d). Here embeddings are not scaled.",
            PLAIN,
        ),
        ("The paper multiplies its embeddings, scaled by sqrt(d_model); this one does not.", PLAIN),
        ("If scale is set, embeddings are scaled by sqrt(d_model).", PLAIN),
        ("scale (bool, optional): whether embeddings are multiplied by sqrt(d_model)", PLAIN),
        ("Positional embeddings are scaled by sqrt(d_model).", PLAIN),
        ("Embeddings are initialised with a normal distribution scaled by 1/sqrt(d_model).", PLAIN),
        ("Embeddings are scaled by 1/sqrt(d_model).", PLAIN),
        ("The text embeddings and image features, scaled by sqrt(hidden_size).", PLAIN),
        ("Scores are divided by sqrt(d_k).", PLAIN),
        ("Scaled dot-product attention: softmax(q k^T / sqrt(d)) v", PLAIN),
        ("Scale attention weights by dividing by sqrt(hidden_size)..", PLAIN),
        ("Scores are divided by sqrt(d_model).", OTHER),
        ("The scores are divided by sqrt(d_model / heads).", PLAIN),
        ("Scores are divided by sqrt(d_model // num_heads)", PLAIN),
    ],
)
def test_documented_scale_that_the_numbers_show_or_nothing_says_is_judged(words, choices):
    _demand(words, choices)


def test_attention_whose_documentation_names_another_scale_is_asked_about(tmp_path: Path) -> None:
    code = '''
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """Scores are divided by sqrt(d_model)."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.d_k = num_heads, d_model // num_heads
        self.wq, self.wk = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.wv, self.wo = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one in (self.wq, self.wk, self.wv)
        )
        weights = (q @ k.mT / self.d_k**0.5).softmax(-1)
        return self.wo((weights @ v).transpose(1, 2).flatten(2))
'''
    with pytest.raises(Unclear, match="its numbers the scores are divided"):
        adapted(tmp_path, "MultiHeadAttention", code)
    assert adapted(tmp_path, "MultiHeadAttention", code.replace("d_model).", "d_k).")).fits
