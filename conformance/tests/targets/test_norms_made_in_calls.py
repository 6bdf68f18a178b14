"""Whole models that make their norms anew in each call: judged, and their weights untrained."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

PLAIN = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
ANEW = edited(
    PLAIN,
    ("self.ln, self.drop = nn.LayerNorm(hidden), nn.Dropout(drop)", "self.drop = nn.Dropout(drop)"),
    ("return self.ln(x + self.drop(update))", "return {}(x + self.drop(update))"),
    ("{}", "nn.LayerNorm(x.shape[-1])"),
)
SAID = "norms are made anew in each call of AddNorm"


@pytest.mark.proof
def test_norms_made_in_calls_are_reported_as_untrained_and_the_rest_is_judged(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "TransformerMT", ANEW)
    assert any(one.startswith(SAID) for one in backend.assumed)  # type: ignore[attr-defined]
    assert "def norms_held(" in backend.written()  # type: ignore[attr-defined]
    right = ("model.formula", "model.pickle", "model.deep-copy", "model.encode-decode-is-forward")
    assert not broken(backend, *right)
    (found,) = broken(backend, "model.every-parameter-reached")
    assert "No gradient reaches encoder.layers.0" in found


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("math.sqrt(hidden // self.heads)", "math.sqrt(hidden)"),
        ("(x + self.drop(update))", "(x) + self.drop(update)"),
    ],
)
def test_mistake_beside_such_norms_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "TransformerMT", ANEW, right, wrong, "model.formula")


@pytest.mark.proof
def test_norms_of_no_weights_stay_a_question(tmp_path: Path) -> None:
    bare = edited(ANEW, ("nn.LayerNorm(x.shape[-1])(", "bare("))
    bare = edited(
        bare,
        (
            "class Feed(",
            "def bare(x):\n    return nn.functional.layer_norm(x, x.shape[-1:])\n\n\nclass Feed(",
        ),
    )
    with pytest.raises(Unclear, match="2 norms were looked for"):
        adapted(tmp_path, "TransformerMT", bare)
