"""Vocabularies as objects, whose ids and sizes are asked for by any spelling of their names."""

import copy
import pickle

import pytest

from attentest.targets.models.tables.vocabularies import Vocabulary, with_vocabularies


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PAD_ID", 3),
        ("src_pad_idx", 3),
        ("padding_index", 3),
        ("PAD_TOKEN", "<pad>"),
        ("vocabSize", 23),
        ("num_words", 23),
        ("BOS_ID", 1),
        ("start_token", "<s>"),
    ],
)
def test_ids_and_sizes_of_a_vocabulary_have_many_spellings(name, value):
    assert getattr(Vocabulary(23, 3), name) == value


@pytest.mark.parametrize("name", ["weights", "pad_mask", "translate", "__array__"])
def test_other_attributes_of_a_vocabulary_are_lacking(name):
    with pytest.raises(AttributeError, match=name):
        getattr(Vocabulary(23, 3), name)


def test_vocabularies_are_copied_and_pickled():
    made = Vocabulary(23, 3)
    for one in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (len(one), one.PAD_ID) == (23, 3)


def test_sizes_stay_numbers_where_a_vocabulary_is_another_argument():
    code = "M(vocab_size=sizes.source_vocabulary, vocab=sizes.source_vocabulary)"
    both, one = with_vocabularies(code, "'int' object has no attribute 'stoi'")
    assert both.count("Vocabulary(") == 2
    assert one.startswith("M(vocab_size=sizes.source_vocabulary, vocab=Vocabulary(")
