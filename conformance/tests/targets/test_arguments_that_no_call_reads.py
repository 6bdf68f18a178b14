"""Encoders of ids with arguments that say nothing: unread ones, segments, vectors of words."""

import pytest
from mistaken_code import adapted, asked, broken, edited

from attentest.targets.adapt import Unclear

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

CODE = """
import torch
from torch import nn


class Texts(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, word_pad_len, n_seg, vectors):
        super().__init__()
        self.rows, self.segments = nn.Embedding(vocab_size, d_model), nn.Embedding(n_seg, d_model)
        if vectors is not None:
            self.rows.weight = nn.Parameter(vectors.clone())
        self.places = nn.Embedding(word_pad_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, n_heads, d_ff, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, n_layers)
        self.head = nn.Linear(d_model, 3)

    def forward(self, text, words_per_sentence, seg_ids):
        places = torch.arange(text.shape[1])
        x = self.rows(text) + self.places(places) + self.segments(seg_ids)
        return self.head(self.layers(x, src_key_padding_mask=text == 0)[:, 0])
"""


def test_encoder_with_arguments_that_say_nothing_is_judged(tmp_path):
    backend = adapted(tmp_path, "Texts", CODE)
    assert "assumed that vectors holds numbers of another run" in "\n".join(backend.assumed)
    assert broken(backend, "encoder.formula", "encoder.padding-invariance") == []


def test_mistake_next_to_an_unread_argument_is_found(tmp_path):
    wrong = edited(CODE, ("src_key_padding_mask=text == 0", "src_key_padding_mask=text != 0"))
    assert broken(adapted(tmp_path, "Texts", wrong), "encoder.formula")


def test_segments_that_are_looked_up_as_positions_are_asked_about(tmp_path):
    wrong = edited(CODE, ("self.segments(seg_ids)", "self.places(seg_ids)"))
    (tmp_path / "own.py").write_text(wrong)
    assert "rows of places.weight that are not those of the positions" in asked(
        f"{tmp_path / 'own.py'}:Texts"
    )


def test_second_text_that_is_read_is_an_input(tmp_path):
    wrong = edited(CODE, ("self.rows(text) +", "self.rows(text) + self.rows(words_per_sentence) +"))
    (tmp_path / "own.py").write_text(wrong)
    assert asked(f"{tmp_path / 'own.py'}:Texts")


def test_mask_that_no_call_reads_is_not_left_out(tmp_path):
    wrong = edited(
        CODE, ("words_per_sentence,", "attention_mask,"), (", src_key_padding_mask=text == 0", "")
    )
    (tmp_path / "own.py").write_text(wrong)
    try:
        backend = adapted(tmp_path, "Texts", wrong)
    except Unclear:
        return
    left = [one for one in backend.assumed if "attention_mask" in one]
    assert left or broken(backend, "encoder.formula")
