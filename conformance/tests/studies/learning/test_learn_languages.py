"""The two invented languages: their grammar by hand, their tokens, and sentences that are wrong."""

import numpy as np
import pytest

from attentest.studies.learning import bleu, languages
from attentest.studies.learning.task import PAD, BadTask
from attentest.studies.learning.tasks import TASKS

CLAUSE = [1, 1, 2, 0, 4, 0, 0]
"""Plural tol with the second adjective, the first verb, singular bal."""


def test_sentences_by_hand():
    first, second = languages.sentences(np.array(CLAUSE))
    assert " ".join(first) == "le pel toli dak le bal"
    # Gender 1 and plural: the adjective and the verb end in -os.
    assert " ".join(second) == "ulun turos iro kamos"
    first, second = languages.sentences(np.array([*CLAUSE, 0, 0, 1, 1, 2, 1, 0]))
    assert " ".join(first) == "le pel toli dak le bal e le gor mar rin le vesi"
    assert " ".join(second) == "ulun turos iro kamos e oka siba anin poda"


def test_text_of_a_target_is_the_sentence():
    source, target = languages.write_translations(np.array([CLAUSE]), 1)
    assert languages.text(target[0]) == "ulun turos iro kamos"
    assert languages.text(source[0]) == "le pel toli dak le bal"
    assert len(set(languages.TOKENS.values())) == len(languages.TOKENS)
    assert max(languages.TOKENS.values()) == languages.VOCABULARY - 1


def test_wrong_sentences_differ_from_right_ones_in_one_ending():
    rng = np.random.default_rng(0)
    questions = languages.draw_agreements(rng, 300, 2)
    right = questions.copy()
    right[:, 0] = 0
    (sources, answers), (sound, _) = (languages.write_agreements(q, 2) for q in (questions, right))
    changed = (sources != sound).sum(axis=1)
    np.testing.assert_array_equal(changed, answers[:, 1] == languages.WRONG)
    assert 0.4 < changed.mean() < 0.6
    words = {number: word for word, number in languages.TOKENS.items()}
    for one, other in zip(sources[sources != sound], sound[sources != sound], strict=True):
        assert words[one][:3] == words[other][:3]
    assert (sources == PAD).any()


def test_number_of_clauses_is_limited():
    with pytest.raises(BadTask, match="1 to 4 clauses; 5 is another"):
        TASKS["translation"].batch([0], 1, 5)


def test_bleu_is_that_of_sacrebleu():
    sacrebleu = pytest.importorskip("sacrebleu")
    _, target = languages.write_translations(np.array([CLAUSE, [2, 0, 1, 3, 5, 1, 2]]), 1)
    assert bleu.bleu(languages.text, target, target) == pytest.approx(100.0)
    written = target.copy()
    written[0, 2] = languages.TOKENS["sibo"]
    hypotheses = ["ulun sibo iro kamos", languages.text(target[1])]
    references = [[languages.text(row) for row in target]]
    wanted = sacrebleu.corpus_bleu(hypotheses, references, tokenize="none").score
    assert bleu.bleu(languages.text, written, target) == pytest.approx(wanted)
    assert 0 < wanted < 100


def test_bleu_is_left_out_without_words_and_without_the_library(monkeypatch):
    _, target = languages.write_translations(np.array([CLAUSE]), 1)
    assert bleu.bleu(None, target, target) is None
    monkeypatch.setattr(bleu, "find_spec", lambda name: None)
    assert bleu.bleu(languages.text, target, target) is None
