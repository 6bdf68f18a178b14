"""The meaning of a mask argument by its name and its documentation."""

import pytest

from attentest.targets.adapt.layouts import documented_layout
from attentest.targets.adapt.masks import meanings_by_words


@pytest.mark.parametrize(
    ("argument", "words", "meaning"),
    [
        ("mask", "mask: 0 for padding, 1 for real tokens", "keep"),
        ("mask", "mask: True for non-padding tokens", "keep"),
        ("mask", "mask: 1 for tokens to attend to and 0 for padding", "keep"),
        ("mask", "mask: 0 for tokens to attend to and 1 for padding", "blocks"),
        ("mask", "A boolean mask where True means the position is not masked.", "keep"),
        ("mask", "mask (Tensor): True = masked out", "blocks"),
        ("mask", "The mask is true where a key must not be attended to.", "blocks"),
        ("mask", "mask: zeros are kept, all else is hidden", "blocks"),
        ("mask", "mask is True where a key may be seen", "keep"),
        ("mask", "mask is True where a key cannot be seen", "blocks"),
        ("mask", "mask (T, T), True where a position may look.", "keep"),
        ("mask", "mask: 1 if a query can see the key", "keep"),
        ("mask", "mask: True where a position may not look.", "blocks"),
        ("mask", "mask: 1 if a query cannot see the key", "blocks"),
        ("mask", "mask: 1 where nobody may look", "blocks"),
        ("mask", "mask: padded elements are set to True", "blocks"),
        ("mask", "mask: padded positions are False", "keep"),
        ("mask", "mask, in which real tokens are True", "keep"),
        ("mask", "mask where valid tokens are 1 and pads are 0", "keep"),
        ("mask", "mask: the pads have the value 0", "keep"),
        ("mask", "mask: True at pads. Use x.masked_fill_(mask, 0) for the masking.", "blocks"),
        ("mask", "Use the mask in x.masked_fill_(mask, 0) for the masking.", ""),
        ("mask", "mask: added to the scores", "additive"),
        ("mask", "The additive mask is added to the scores before the softmax.", "additive"),
        ("src_key_padding_mask", "", "blocks"),
        ("attention_mask", "", "keep"),
        ("invalid_mask", "", "blocks"),
        ("valid", "", "keep"),
        ("attn_mask", "Attend with a mask.", ""),
        ("tgt_mask", "tgt_mask additive (T, T); memory_mask (B, S), True at padding.", "additive"),
        (
            "tgt_mask",
            "memory_mask (B, S), True is kept. tgt_mask (T, T), True is hidden.",
            "blocks",
        ),
        ("tgt_mask", "tgt_mask: (T, T). True in a mask is hidden.", "blocks"),
        ("pad_mask", "Softmax of scores + causal_mask, where causal_mask_ij = -inf if j > i.", ""),
        ("causal_mask", "causal_mask: added to the scores", "additive"),
        ("mask", "Return 1 value. The padding is ignored.", ""),
        ("mask", "The heads can equal 1 and the mask will be broadcasted to all.", ""),
        ("mask", "1 where the mask will be applied, which can be broadcast.", "blocks"),
        ("attention_mask", "attention_mask: (b, h, q, k). True indicates masking.", "blocks"),
        ("attention_mask", "attention_mask: True = masked", "blocks"),
        ("attention_mask", "attention_mask: False = masked", "keep"),
        ("mask", "mask: True = unmasked", "keep"),
        ("mask", "mask: 1 in the masking tensor is kept", "keep"),
    ],
)
def test_words_say_what_a_mask_means(argument: str, words: str, meaning: str) -> None:
    meanings, _ = meanings_by_words(argument, words)
    assert next(iter(meanings), "") == meaning


def test_additive_mask_whose_numbers_are_named_may_be_either() -> None:
    words = "The attention_mask is additive (0 keeps, -10000 drops)."
    assert meanings_by_words("attention_mask", words)[0] == ("blocks", "additive")


def test_sentence_about_another_argument_says_nothing() -> None:
    words = "key_padding_mask: True marks padding."
    others = ["attn_mask", "key_padding_mask"]
    assert meanings_by_words("attn_mask", words, others=others) == ((), "")
    assert meanings_by_words("key_padding_mask", words, others=others[:1])[0] == ("blocks",)
    assert meanings_by_words("attn_mask", "True in a mask is hidden.", others=others)[0]


@pytest.mark.parametrize(
    ("words", "layout"),
    [
        ("x: (B, T, D)", "batch-first"),
        ("query of shape (batch, seq_len, dim)", "batch-first"),
        ("query: [T, B, C]", "sequence-first"),
        ("Input shape: Time x Batch x Channel", "sequence-first"),
        ("x: (L, N, E), key_padding_mask: (N, L)", "sequence-first"),
        ("query (seq x batch x width)", "sequence-first"),
        ("Input: batch x time x channel", "batch-first"),
        ("The sequences of a max batch", ""),
        ("Takes a sequence at most as long as max batches allow", ""),
        ("key_padding_mask: (B, T), True marks padding", ""),
        ("attn_mask: (B, T, S) is added", ""),
        ("attn_mask (B, T, S), x (T, B, D)", "sequence-first"),
        ("tokens (batch, length)", ""),
        ("x is (B, T, D) or (T, B, D)", ""),
    ],
)
def test_words_say_how_sequences_lie(words: str, layout: str) -> None:
    assert documented_layout(words) == layout


def test_a_negative_number_is_no_entry_that_is_marked() -> None:
    words = "labels of masked words: all labels set to -1 are ignored (masked)"
    assert meanings_by_words("attention_mask", words) == (("keep", "additive"), "name")
