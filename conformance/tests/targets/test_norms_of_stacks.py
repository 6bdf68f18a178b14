"""Stacks whose norms the spec cannot have as they are: of two epsilons, or one for each layer."""

from pathlib import Path

import pytest
from mistaken_code import adapted, broken
from test_encoders_of_images import VIT

from attentest.targets.adapt import Unclear

TWO = VIT.replace("self.norm, self.head = nn.LayerNorm(dim)", "self.norm, self.head = FINAL")
OWN_NORM = TWO.replace("FINAL", "nn.LayerNorm(dim, eps=1e-6)")
SAME_NORM = TWO.replace("FINAL", "nn.LayerNorm(dim, eps=1e-5)")
SHARED = VIT.replace("self.mlp(self.norm2(x))", "self.mlp(self.norm1(x))").replace(
    "self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)",
    "self.norm1 = nn.LayerNorm(dim)",
)


def test_norms_of_two_epsilons_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"norm has the epsilon 1e-06 and \S+ has 1e-05"):
        adapted(tmp_path, "ViT", OWN_NORM)


@pytest.mark.proof
def test_norms_of_one_epsilon_are_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "ViT", SAME_NORM), "encoder.formula")


def test_one_norm_for_the_sublayers_of_each_layer_is_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="one norm for all sublayers of a layer"):
        adapted(tmp_path, "ViT", SHARED)
