"""Whole models that take a mask of the source, and make it of an id of padding without one."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited
from proof import share

from attentest.targets.adapt import Unclear

SOURCE = """
import torch
from torch import nn


class Seq2SeqTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, pad_token_id):
        super().__init__()
        self.pad_token_id = pad_token_id
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.body = nn.Transformer(
            d_model, n_heads, n_layers, n_layers, d_ff, 0.0, batch_first=True
        )

    def embedded(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device))

    def forward(self, input_ids, attention_mask=None, decoder_input_ids=None):
        if attention_mask is None:
            attention_mask = (input_ids != self.pad_token_id).long()
        hidden = attention_mask == 0
        n = decoder_input_ids.size(1)
        later = torch.ones(n, n, dtype=torch.bool, device=input_ids.device).triu(1)
        y = self.body(
            self.embedded(input_ids),
            self.embedded(decoder_input_ids),
            tgt_mask=later,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return y @ self.words.weight.T
"""
pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")
CLAUSES = ("model.formula", "model.padding-in-a-batch")


@pytest.mark.proof
@share(1)
def test_mask_of_the_source_is_given(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", SOURCE)
    assert "attention_mask" in "\n".join(backend.understood)
    assert broken(backend, *CLAUSES) == []


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("attention_mask == 0", "input_ids == self.pad_token_id"),
        ("            memory_key_padding_mask=hidden,\n", ""),
        (".triu(1)", ".triu(2)"),
    ],
)
def test_mistakes_of_masks_are_asked_about_or_detected(
    right: str, wrong: str, tmp_path: Path
) -> None:
    source = SOURCE.replace(right, wrong)
    assert source != SOURCE
    try:
        backend = adapted(tmp_path, "Seq2SeqTransformer", source)
    except Unclear:
        return
    assert broken(backend, *CLAUSES)


OWN = (SUPPORT / "wild_models" / "one_pad.py").read_text(encoding="utf-8")
OF_QUERIES = edited(
    OWN,
    ("(dot + hidden)", "dot.masked_fill(hidden < 0, -1e9)"),
    ("forward(self, src, tgt)", "forward(self, src, tgt, future_mask=None)"),
    (
        "        own = (tgt != self.pad_id).to(dtype)[:, None, :] * past\n",
        "        own = (tgt != self.pad_id).to(dtype)[:, None, :].expand(-1, t, -1)\n"
        "        if future_mask is not None:\n"
        "            past = (~future_mask).to(dtype).expand(t, t)\n"
        "            own = (tgt != self.pad_id).to(dtype)[:, :, None] * past\n",
    ),
)
"""Wrong: beside a mask of later steps, that of padding hides the rows of queries."""


@pytest.mark.proof
def test_question_on_a_mask_names_its_nearest_form_and_its_answer_is_judged(tmp_path: Path) -> None:
    with pytest.raises(
        Unclear, match=r"future_mask as True blocks; \(T, T\): it does not hide pad"
    ):
        adapted(tmp_path, "Transformer", OF_QUERIES)
    said = {"target_mask": "future_mask"}
    backend = adapted(tmp_path, "Transformer", OF_QUERIES, arguments=said)
    assert broken(backend, "model.formula")
    right = OF_QUERIES.replace("to(dtype)[:, :, None]", "to(dtype)[:, None, :]")
    assert not broken(adapted(tmp_path, "Transformer", right), "model.formula")
