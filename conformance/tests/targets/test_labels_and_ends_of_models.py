"""Whole models that take labels next to the target, or whose padding is at the end of a side."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.models.building import building
from attentest.targets.models.inferring import Inferred, infer
from attentest.targets.resolve import module_of

MODEL = """
import torch
from torch import nn
from torch.nn import functional


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads, layers, d_ff, pad_id):
        super().__init__()
        self.pad_id = pad_id
        self.src, self.tgt = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.stacks = nn.Transformer(d_model, heads, layers, layers, d_ff, 0.1, batch_first=True)
        self.head = nn.Linear(d_model, tgt_vocab)

    def forward(self, enc_ids, dec_ids, target=None):
        n, hidden = dec_ids.shape[1], enc_ids == self.pad_id
        later = torch.ones(n, n, dtype=torch.bool, device=enc_ids.device).triu(1)
        states = self.stacks(
            self.src(enc_ids), self.tgt(dec_ids), tgt_mask=later, src_key_padding_mask=hidden,
            tgt_key_padding_mask=dec_ids == self.pad_id, memory_key_padding_mask=hidden,
        )
        if target is None:
            return self.head(states[:, [-1]]), None
        logits = self.head(states).flatten(0, 1)
        return logits, functional.cross_entropy(logits, target.view(-1), ignore_index=self.pad_id)
"""
FIRST = ("memory_key_padding_mask=hidden", "memory_key_padding_mask=hidden & ~hidden[:, :1]")
WRITTEN = ("self.pad_id = pad_id\n", "self.pad_id = 50259\n")


def inferred(folder: Path, text: str, name: str = "Seq2Seq") -> Inferred:
    file = folder / "own.py"
    file.write_text(text)
    built = building(getattr(module_of(str(file)), name), name, Reading())
    return infer(built, name, "", Reading())


def test_optional_target_next_to_a_required_one_is_of_labels(tmp_path: Path) -> None:
    found = inferred(tmp_path, MODEL)
    assert found.call.arguments.tokens == {"source": "enc_ids", "target": "dec_ids"}
    assert found.call.conventions.labelled
    assert found.doubts == found.lengths == found.ungiven == ()


def test_padding_that_is_hidden_behind_the_first_token_alone_is_at_the_end(tmp_path: Path) -> None:
    found = inferred(tmp_path, MODEL.replace(*FIRST))
    assert found.lengths == ("source",)
    assert "padding of the source is at its end" in found.doubts[0]


def test_id_of_padding_that_no_small_vocabulary_has_is_named(tmp_path: Path) -> None:
    code = MODEL.replace(*WRITTEN).replace(", pad_id):", "):")
    code = code.replace("== self.pad_id", "== 50259")
    with pytest.raises(Unclear, match=r"by the id 50259, which is written in its code"):
        inferred(tmp_path, code)


MIXED = ("x.transpose(1, 2).reshape(n", "x.reshape(n")


@pytest.mark.proof
@pytest.mark.parametrize("hidden", ["== 0", "== 1"])
def test_masks_are_those_of_one_head_where_heads_are_mixed(tmp_path: Path, hidden: str) -> None:
    code = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")
    assert MIXED[0] in code
    right = code.replace("mask.unsqueeze(1) == 0", f"mask.unsqueeze(1) {hidden}")
    found = inferred(tmp_path, right.replace(*MIXED), "make_model")
    meanings = {form.meaning for form in found.call.conventions.masks.values()}
    assert meanings == {"keep" if hidden == "== 0" else "blocks"}
    assert not found.doubts
