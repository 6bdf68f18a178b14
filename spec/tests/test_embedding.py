"""The embedding oracle against rows picked by hand and torch's function."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from attentest_spec.choices import PAPER
from attentest_spec.embedding import embedding
from attentest_spec.setting import Setting

TOKENS = np.array([[3, 0, 3], [1, 2, 10]])


def setting(rng: np.random.Generator, scale: str = "sqrt-d") -> Setting:
    """Draw a table of 11 rows of 6 columns."""
    weight = {"weight": rng.normal(size=(11, 6))}
    return Setting(choices=PAPER.but(embedding_scale=scale), parameters=weight)


def test_worked_values_of_the_chapter() -> None:
    weight = np.array([[0.5, -1.0, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    found = embedding(Setting(parameters={"weight": weight}), np.array([[0, 1]]))
    assert found.tolist() == [[[1.0, -2.0, 0.0, 4.0], [2.0, 2.0, 2.0, 2.0]]]


def test_equals_torch_times_the_root_of_the_width(rng: np.random.Generator) -> None:
    given = setting(rng)
    rows = functional.embedding(torch.from_numpy(TOKENS), torch.from_numpy(given["weight"]))
    expected = (rows * math.sqrt(6.0)).numpy()
    np.testing.assert_allclose(embedding(given, TOKENS), expected, atol=1e-12)


def test_without_scale_it_is_the_plain_row(rng: np.random.Generator) -> None:
    given = setting(rng, "none")
    found = embedding(given, TOKENS)
    assert found.shape == (2, 3, 6)
    assert (found[0, 1] == given["weight"][0]).all()
    assert (found[1, 2] == given["weight"][10]).all()


@pytest.mark.parametrize("foreign", [-1, -11, 11, 10**12])
def test_a_foreign_id_is_refused_by_name(rng: np.random.Generator, foreign: int) -> None:
    with pytest.raises(IndexError, match=rf"id {foreign} .* vocabulary of 11 "):
        embedding(setting(rng), np.array([[0, foreign]]))


def test_every_id_of_a_large_vocabulary_has_its_own_row() -> None:
    rows = np.arange(32_000.0)[:, None]
    given = Setting(choices=PAPER.but(embedding_scale="none"), parameters={"weight": rows})
    assert (embedding(given, np.arange(32_000)[None]) == rows).all()
