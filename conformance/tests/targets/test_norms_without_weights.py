"""Functions that normalise rows and take no weights: the formula is the one of their numbers."""

import pytest
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

NORM = """
import torch


def layer_norm(x, eps=1e-6):
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True, unbiased=False)
    return (x - mean) / (deviation + eps)
"""
FORMULA = ("layer_norm.formula", "layer_norm.epsilon", "layer_norm.epsilon-place")
INSIDE = ("(deviation + eps)", "(deviation.square() + eps).sqrt()")


@pytest.mark.parametrize(
    "edits",
    [
        (),
        (("unbiased=False", "unbiased=True"),),
        (INSIDE,),
        (INSIDE, ("eps=1e-6", "eps=1e-4")),
        (("eps=1e-6", "eps=1e-12"),),
    ],
    ids=["added", "unbiased", "inside", "another-power", "small"],
)
def test_function_without_weights_follows_the_formula_of_its_numbers(edits, tmp_path):
    read = adapted(tmp_path, "layer_norm", edited(*edits))
    assert not [one for one in FORMULA if broken(read, one)]


@pytest.mark.parametrize(
    "edit",
    [
        ("(deviation + eps)", "(deviation.square() + eps)"),
        ("dim=-1", "dim=1"),
        ("(x - mean)", "x"),
        ("keepdim=True)\n    dev", "keepdim=True) * 0.5\n    dev"),
    ],
    ids=["variance", "axis", "mean-kept", "half-a-mean"],
)
def test_function_without_weights_breaks_another_formula(edit, tmp_path):
    assert broken(adapted(tmp_path, "layer_norm", edited(edit)), FORMULA[0])


def test_function_is_a_question_where_its_small_rows_alone_differ(tmp_path):
    with pytest.raises(Unclear, match="gives its small ones"):
        adapted(tmp_path, "layer_norm", edited(("+ eps)", "+ eps * 0.37)")))


def edited(*edits: tuple[str, str]) -> str:
    """Return the source of the norm with `edits`."""
    source = NORM
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    return source
