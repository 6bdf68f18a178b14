"""Comments that say what the entries of a mask mean, in the place of documentation."""

from pathlib import Path

import pytest
from mistaken_code import adapted

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.masks import meanings_by_words
from attentest.targets.comments import comments_on_masks
from attentest.targets.models.combining import demand_documented_masks
from attentest.targets.models.forms import Form
from attentest.targets.resolve import module_of

CODE = """
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)

    def forward(self, x, mask=None):
        b, t, c = x.shape
        q, k, v = (
            f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5
        if mask is not None:  # (batch, time), True = real token
            scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, c))
"""


def test_mask_that_follows_its_comment_is_read(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", CODE)
    assert any("True may be attended" in one for one in backend.understood)


def test_mask_that_contradicts_its_comment_is_asked_about(tmp_path: Path) -> None:
    wrong = CODE.replace("~mask[", "mask[")
    with pytest.raises(Unclear, match="mask=keep or --set mask=blocks"):
        adapted(tmp_path, "SelfAttention", wrong)


def _declared(
    x,
    mask=None,  # True at padding
    other=None,  # the rest
):
    hidden = ~mask  # True where it keeps
    return x, hidden, other


def _in_one_line(x, key_mask):  # 1 for real tokens
    return x, key_mask


def test_comments_on_what_is_made_of_a_mask_do_not_count() -> None:
    assert list(comments_on_masks(_declared)) == ["mask: True at padding"]
    assert list(comments_on_masks(_in_one_line)) == ["key_mask: 1 for real tokens"]
    assert list(comments_on_masks(len)) == []


def _at_the_head(x, src_mask, tgt_mask):
    """Return all three."""
    # src_mask shape : (samples, length) - True for real tokens, False for padding
    # True of a tgt_mask hides nothing
    hidden = ~src_mask
    # tgt_mask: True where it is later
    return x, hidden, tgt_mask


def test_comments_before_the_first_statement_that_begin_with_a_mask_count() -> None:
    said = "src_mask shape : (samples, length) - True for real tokens, False for padding"
    assert list(comments_on_masks(_at_the_head)) == [said]
    assert meanings_by_words("src_mask", said) == (("keep",), "documentation")


def test_masks_of_models_against_their_documentation_are_a_question() -> None:
    blocks = Form("~(source_keep)", "blocks", "True blocks; (B, S)", 2)
    masks = {"src_mask": blocks}
    assert demand_documented_masks("Model", masks, {"src_mask": (("keep",), "name")}) == [
        "src_mask"
    ]
    assert not demand_documented_masks("Model", masks, {"src_mask": (("blocks",), "name")})
    assert demand_documented_masks("Model", masks, {"src_mask": (("additive",), "documentation")})
    with pytest.raises(Unclear, match="contrary of what is documented"):
        demand_documented_masks("Model", masks, {"src_mask": (("keep",), "documentation")})


@pytest.mark.parametrize(
    "words",
    [
        "attention_mask: 0/1\uff081=\u771f\u5b9e token\uff09\uff0c\u7528\u4e8e\u5c4f\u853d padding",
        "attention_mask: 1=\u771f\u5b9e token 0\u8868\u793apadding",
        "attention_mask\uff1a1\u4e3a\u771f\u5b9e\uff0c0\u4e3apadding",
    ],
)
def test_words_of_another_script_end_a_phrase(words: str) -> None:
    """They are not read, so 1 is no padding here."""
    meanings, _ = meanings_by_words("attention_mask", words)
    assert "blocks" not in meanings
    plain, source = meanings_by_words("attention_mask", "attention_mask: 1 is padding")
    assert (plain, source) == (("blocks",), "documentation")


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("mask: positions where mask == 0 are filled with -inf before the softmax", "keep"),
        ("mask: positions where mask == 1 are set to -inf", "blocks"),
        ("mask: float mask with -inf at hidden positions", "additive"),
    ],
)
def test_numbers_that_are_filled_with_minus_infinity_are_hidden(words: str, meaning: str) -> None:
    assert meanings_by_words("mask", words)[0][0] == meaning


SCRIPT = (
    CODE
    + """

if __name__ == "__main__":
    x = torch.randn(2, 5, 16)
    # 1 for real tokens, 0 for padding
    mask = torch.ones(2, 5)
    print(SelfAttention(16, 2)(x, mask))
"""
)


def test_comments_on_a_mask_that_the_script_makes_count(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SCRIPT.replace(", True = real token", ""))
    attention = vars(module_of(f"{tmp_path / 'own.py'}:SelfAttention"))["SelfAttention"]
    said = list(comments_on_masks(attention.forward))
    assert said == ["mask: 1 for real tokens, 0 for padding"]
    assert meanings_by_words("mask", said[0])[0] == ("keep",)
