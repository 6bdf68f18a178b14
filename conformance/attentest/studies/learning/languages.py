"""Two invented languages with one meaning: sentences of both from the same numbers.

A clause has a subject, a verb and an object; a noun may have an adjective. The first language says
`le [adjective] noun verb le [adjective] noun`: nouns have a plural, and nothing else agrees. The
second one has no articles, puts adjectives behind their nouns and the verb at the end; each noun
has a gender, adjectives agree with their noun in gender and number, and the verb does so with the
subject. So the words change their places, and their forms depend on words that are far away.
"""

from itertools import product

import numpy as np

from attentest.studies.learning.task import BEGIN, END, BadTask, padded
from attentest_spec.setting import Array

NOUNS = ("mar", "tol", "ves", "kin", "bal", "sor", "lum", "fen")
ADJECTIVES = ("gor", "pel", "zim", "hul")
VERBS = ("dak", "rin", "jov", "wes", "tam")
STEMS = {
    **dict(zip(NOUNS, ("oka", "ulu", "ani", "epe", "iro", "asu", "oni", "ema"), strict=True)),
    **dict(zip(ADJECTIVES, ("sib", "tur", "nal", "gef"), strict=True)),
    **dict(zip(VERBS, ("kam", "pod", "lir", "vun", "bez"), strict=True)),
}
"""The stems of the second language, by the words of the first."""

ENDINGS = {(0, 0): "a", (0, 1): "as", (1, 0): "o", (1, 1): "os"}
"""The endings of what agrees, by gender and number; the nouns of even places have gender 0."""

ARTICLE, AND, PLURAL = "le", "e", "i"

CLAUSES = range(1, 5)
"""The least and the greatest number of clauses of a sentence."""

_RANGES = (len(NOUNS), 2, len(ADJECTIVES) + 1, len(VERBS), len(NOUNS), 2, len(ADJECTIVES) + 1)
"""Of a clause: noun, number and adjective (0 for none) of the subject, verb, and the object's."""

_WORDS = (
    ARTICLE,
    AND,
    *(noun + ending for noun in NOUNS for ending in ("", PLURAL)),
    *ADJECTIVES,
    *VERBS,
    *(STEMS[noun] + ending for noun in NOUNS for ending in ("", "n")),
    *(STEMS[one] + end for one, end in product((*ADJECTIVES, *VERBS), ENDINGS.values())),
)
TOKENS = {word: number for number, word in enumerate(_WORDS, start=END + 1)}
"""The tokens of the words of both languages."""

VOCABULARY = END + 1 + len(_WORDS)

WRONG, RIGHT = 1, 2
"""The answers to the question whether a sentence agrees."""


def draw_clauses(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw the numbers of sentences of `length` clauses, as (B, 7 times `length`)."""
    if length not in CLAUSES:
        raise BadTask(
            f"A sentence has {CLAUSES[0]} to {CLAUSES[-1]} clauses; {length} is another number."
        )
    return rng.integers(0, _RANGES * length, size=(count, len(_RANGES) * length))


def _clauses(numbers: Array) -> list[list[int]]:
    rows: list[list[int]] = numbers.reshape(-1, len(_RANGES)).tolist()
    return rows


def _first_language(clause: list[int]) -> list[str]:
    noun, number, adjective, verb, *other = clause
    return [*_phrase(noun, number, adjective), VERBS[verb], *_phrase(*other)]


def _phrase(noun: int, number: int, adjective: int) -> list[str]:
    quality = [ADJECTIVES[adjective - 1]] if adjective else []
    return [ARTICLE, *quality, NOUNS[noun] + PLURAL * number]


def _second_language(clause: list[int]) -> list[str]:
    noun, number, adjective, verb, *other = clause
    form = STEMS[VERBS[verb]] + ENDINGS[noun % 2, number]
    return [*_agreeing(noun, number, adjective), *_agreeing(*other), form]


def _agreeing(noun: int, number: int, adjective: int) -> list[str]:
    quality = [STEMS[ADJECTIVES[adjective - 1]] + ENDINGS[noun % 2, number]] if adjective else []
    return [STEMS[NOUNS[noun]] + "n" * number, *quality]


def sentences(numbers: Array) -> tuple[list[str], list[str]]:
    """Return the words of one sentence in both languages, for its numbers."""
    both: tuple[list[str], list[str]] = ([], [])
    for clause in _clauses(numbers):
        for words, grammar in zip(both, (_first_language, _second_language), strict=True):
            words += [*([AND] if words else []), *grammar(clause)]
    return both


def write_translations(questions: Array, length: int) -> tuple[Array, Array]:
    """Return sentences of the first language, and the same ones in the second."""
    source, target = translation_width(length)
    pairs = [sentences(one) for one in questions]
    read = [[TOKENS[word] for word in first] for first, _ in pairs]
    wanted = [[BEGIN, *(TOKENS[word] for word in second), END] for _, second in pairs]
    return padded(read, source), padded(wanted, target)


def translation_width(length: int) -> tuple[int, int]:
    """Return how many tokens a sentence of `length` clauses and its translation can have."""
    return 8 * length - 1, 6 * length + 1


def text(tokens: Array) -> str:
    """Return the words of a target, up to its end."""
    row = [int(one) for one in tokens]
    row = row[: row.index(END)] if END in row else row
    return " ".join(_WORDS[one - END - 1] for one in row if one > END)


def draw_agreements(rng: np.random.Generator, count: int, length: int) -> Array:
    """Draw sentences, and in front of each a number: 0 where it is right, otherwise its mistake."""
    mistake = rng.integers(0, 2, size=(count, 1)) * rng.integers(1, 1000, size=(count, 1))
    return np.concatenate([mistake, draw_clauses(rng, count, length)], axis=1)


def write_agreements(questions: Array, length: int) -> tuple[Array, Array]:
    """Return sentences of the second language, and whether every word of them agrees.

    In a wrong one the ending of one verb or adjective is another one.
    """
    rows, answers = [], []
    for mistake, *numbers in questions.tolist():
        _, words = sentences(np.array(numbers))
        rows.append([TOKENS[word] for word in (_mistaken(words, mistake) if mistake else words)])
        answers.append([BEGIN, WRONG if mistake else RIGHT])
    return padded(rows, agreement_width(length)[0]), np.array(answers)


def _mistaken(words: list[str], mistake: int) -> list[str]:
    """Return the words with another ending of one that agrees; the number `mistake` chooses."""
    stems = [STEMS[one] for one in (*ADJECTIVES, *VERBS)]
    places = [place for place, word in enumerate(words) if word[:3] in stems]
    place = places[mistake % len(places)]
    stem, ending = words[place][:3], words[place][3:]
    others = [one for one in ENDINGS.values() if one != ending]
    other = others[mistake // len(places) % len(others)]
    return [*words[:place], stem + other, *words[place + 1 :]]


def agreement_width(length: int) -> tuple[int, int]:
    """Return how many tokens a sentence of `length` clauses can have, and its answer."""
    return 6 * length - 1, 2


def vocabulary(length: int) -> tuple[int, int]:
    """Return the tokens of source and target: both languages have one vocabulary."""
    return VOCABULARY, VOCABULARY


def answers(length: int) -> tuple[int, int]:
    """Return the tokens of a sentence, and those of an answer: padding, wrong, right."""
    return VOCABULARY, RIGHT + 1
