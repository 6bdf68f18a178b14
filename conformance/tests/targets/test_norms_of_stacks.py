"""Stacks whose norms the spec has otherwise: of two epsilons, or one norm for each layer."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from test_encoders_of_images import VIT

import attentest
from attentest.targets.adapt import Unclear

TWO = VIT.replace("self.norm, self.head = nn.LayerNorm(dim)", "self.norm, self.head = FINAL")
OWN_NORM = TWO.replace("FINAL", "nn.LayerNorm(dim, eps=1e-6)")
SAME_NORM = TWO.replace("FINAL", "nn.LayerNorm(dim, eps=1e-5)")
SHARED = VIT.replace("self.mlp(self.norm2(x))", "self.mlp(self.norm1(x))").replace(
    "self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)",
    "self.norm1 = nn.LayerNorm(dim)",
)
BOTH = [
    pytest.param(OWN_NORM, "norms of two epsilons are meant", id="two epsilons"),
    pytest.param(SHARED, "one norm for all sublayers of a layer, layers.0.norm1", id="shared"),
]


@pytest.mark.proof
@pytest.mark.parametrize(("source", "words"), BOTH)
def test_stacks_with_other_norms_are_read_and_conform(
    source: str, words: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "ViT", source)
    assert words in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(
        backend, "encoder.formula", "encoder.depth-counts", "encoder.every-parameter-reached"
    )
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "encoder.formula")


@pytest.mark.proof
@pytest.mark.parametrize("source", [OWN_NORM, SHARED], ids=["two epsilons", "shared"])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (" * self.scale", ""),
        (".softmax(dim=-1)", ".softmax(dim=-2)"),
        ("return x + self.mlp(", "return self.mlp("),
    ],
    ids=["no scale", "axis", "no residual"],
)
def test_mistakes_in_stacks_with_other_norms_are_detected(
    source: str, right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "ViT", source, right, wrong, "encoder.formula")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (OWN_NORM, r"norm has the epsilon 1e-06 and \S+ has 1e-05"),
        (SHARED, "one norm for all sublayers of a layer"),
    ],
    ids=["two epsilons", "shared"],
)
def test_stacks_with_other_norms_are_questions_under_strict(
    source: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match=words):
        adapted(tmp_path, "ViT", source, strict=True)


@pytest.mark.proof
def test_norms_of_one_epsilon_are_judged(tmp_path: Path) -> None:
    assert not broken(adapted(tmp_path, "ViT", SAME_NORM), "encoder.formula")
