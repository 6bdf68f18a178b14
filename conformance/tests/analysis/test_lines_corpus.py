"""The corpus of mistakes with known lines: each replacement fits, and both twins can be loaded."""

from functools import cache
from types import ModuleType

import line_corpus
import pytest
from line_corpus import EARLY, EFFECTS, FRESH, HELD_OUT, JAX, OPEN, PARTS, Mistake

MISTAKES = [
    one
    for folder in (OPEN, HELD_OUT, EARLY, EFFECTS, JAX, PARTS, FRESH)
    for one in line_corpus.mistakes(folder)
]


@cache
def load(source: str) -> ModuleType:
    module = ModuleType("twin")
    exec(compile(source, "twin.py", "exec"), vars(module))
    return module


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.slug)
def test_mistake_is_one_replacement_with_known_lines(mistake: Mistake) -> None:
    if "from einops import" in mistake.sound_source:
        pytest.importorskip("einops")
    if mistake.folder == JAX:
        pytest.importorskip("jax")
    name = mistake.target.partition(":")[2]
    assert hasattr(load(mistake.sound_source), name)
    assert hasattr(load(mistake.wrong_source), name)
    assert 1 <= len(mistake.accepted) <= 3


def test_slugs_are_unique() -> None:
    slugs = [one.slug for one in MISTAKES]
    assert len(set(slugs)) == len(slugs)


def test_corpus_is_large_and_mostly_not_from_the_catalogue() -> None:
    assert len(MISTAKES) >= 85
    assert 2 * sum(not one.catalogued for one in MISTAKES) >= 85
