"""A mask that code takes, and the contrary one that a function of its file makes."""

from pathlib import Path

import pytest

import attentest
from attentest.targets import resolve
from attentest.targets.adapt.makers.contrary import demand_meaning
from attentest.targets.adapt.reading import Unclear

SOURCE = """
import math

import torch


def causal_mask(size):
    return torch.ones(size, size).triu(1) == 0


def attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ value
"""
CALLED = """

if __name__ == "__main__":
    x = torch.randn(1, 3, 4)
    print(attention(x, x, x, causal_mask(3)))
"""
INVERTED = CALLED.replace("causal_mask(3)", "~causal_mask(3)")
BY_NAME = """

def attended(x):
    made = causal_mask(x.shape[-2])
    return attention(x, x, x, ~made)
"""
CONTRARY = SOURCE.replace("mask == 0, float", "mask == 1, float")


@pytest.mark.parametrize(
    "source",
    [
        CONTRARY + CALLED,
        SOURCE.replace("triu(1) == 0", "triu(1) == 1") + CALLED,
        (CONTRARY + CALLED).replace("causal_mask(size)", "causal_mask(size, device='cpu')"),
    ],
)
def test_contrary_masks_in_a_file_are_asked_about(source: str, tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"causal_mask in the same file makes one that says"):
        attentest.adapted(_file(tmp_path, source))


@pytest.mark.parametrize(
    "source",
    [
        SOURCE + CALLED,
        CONTRARY.replace("triu(1) ==", "tril() ==") + CALLED,
        CONTRARY,
        CONTRARY + INVERTED,
        CONTRARY + BY_NAME,
        CONTRARY.replace("(1) == 0", "(1)[0]") + CALLED,
    ],
)
def test_masks_that_agree_or_are_inverted_or_not_given_are_read(
    source: str, tmp_path: Path
) -> None:
    assert attentest.adapted(_file(tmp_path, source)).name


@pytest.mark.parametrize("mask", ["keep", "blocks"])
def test_the_option_that_is_asked_for_judges(mask: str, tmp_path: Path) -> None:
    assert attentest.adapted(_file(tmp_path, CONTRARY + CALLED), mask=mask).name


def test_masks_of_whole_models_have_the_meaning_of_those_of_their_file(tmp_path: Path) -> None:
    home = resolve.module_of(_file(tmp_path, SOURCE + CALLED).partition(":")[0])
    demand_meaning("Model", "src_mask", "keep", "", home)
    demand_meaning("Model", "src_mask", "blocks", "src_mask: True is hidden", home)
    with pytest.raises(Unclear, match=r"src_mask of Model says what is hidden, and causal_mask"):
        demand_meaning("Model", "src_mask", "blocks", "", home)


def _file(folder: Path, source: str) -> str:
    (folder / "attention_of_file.py").write_text(source)
    return f"{folder / 'attention_of_file.py'}:attention"
