"""Whole models whose norms train one number for all columns, or serve all sublayers of a layer."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken

import attentest
from attentest.targets.adapt import Unclear

ANNOTATED = (SUPPORT / "wild_models" / "annotated.py").read_text(encoding="utf-8")
SCALAR = ANNOTATED.replace("(torch.ones(features))", "(torch.ones(1))").replace(
    "(torch.zeros(features))", "(torch.zeros(1))"
)
SCALE_NORM = SCALAR.replace(
    "self.a_2 * centred / (x.std(-1, keepdim=True) + self.eps) + self.b_2",
    "self.a_2 * x / x.norm(dim=-1, keepdim=True).clamp(min=self.eps) + self.b_2",
)
SHARED = ANNOTATED
for number in (2, 3):
    SHARED = SHARED.replace(f"clones(Sublayer(size, dropout), {number})", "Sublayer(size, dropout)")
SHARED = SHARED.replace("self.sublayer[0](", "self.sublayer(")
SHARED = SHARED.replace("self.sublayer[1](", "self.sublayer(")
SHARED = SHARED.replace("self.sublayer[2](", "self.sublayer(")
MASKED = "self.self_attn(x, x, x, tgt_mask)"


@pytest.mark.proof
@pytest.mark.parametrize(
    ("source", "words"),
    [(SCALAR, "train one number for all columns"), (SHARED, "one norm for all sublayers")],
    ids=["scalar", "shared"],
)
def test_models_with_other_norms_are_read_and_conform(
    source: str, words: str, tmp_path: Path
) -> None:
    assert source != ANNOTATED
    backend = adapted(tmp_path, "make_model", source)
    assert words in "\n".join(backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.parameter-gradient")
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not broken(attentest.adapted(str(tmp_path / "written.py:backend")), "model.formula")


@pytest.mark.proof
@pytest.mark.parametrize("source", [SCALAR, SHARED], ids=["scalar", "shared"])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (MASKED, "self.self_attn(x, x, x, None)"),
        (" / math.sqrt(self.d_k)", ""),
        ("self.src_attn(x, memory, memory, src_mask)", "self.src_attn(x, memory, memory, None)"),
    ],
    ids=["no causal mask", "no scale", "no source mask"],
)
def test_mistakes_in_models_with_other_norms_are_detected(
    source: str, right: str, wrong: str, tmp_path: Path
) -> None:
    assert asked_or_broken(tmp_path, "make_model", source, right, wrong, "model.formula")


@pytest.mark.parametrize(
    ("source", "words"),
    [(SCALAR, "train one number for all columns"), (SHARED, "one norm for all sublayers")],
    ids=["scalar", "shared"],
)
def test_models_with_other_norms_are_questions_under_strict(
    source: str, words: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match=words):
        adapted(tmp_path, "make_model", source, strict=True)


def test_scale_norms_of_a_model_are_a_question(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="train one number for all columns"):
        adapted(tmp_path, "make_model", SCALE_NORM)


@pytest.mark.proof
def test_width_that_one_norm_of_one_number_gets_as_its_epsilon_is_detected(tmp_path: Path) -> None:
    text = SCALAR.replace("(self, features, eps=1e-6):", "(self, eps=1e-6):")
    wrong = text.replace("LayerNorm(size)", "LayerNorm()")
    assert wrong != text != SCALAR
    assert broken(adapted(tmp_path, "make_model", wrong), "model.formula")
