"""A table of rotary positions that a function of the file remembers, in single precision."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest
from attentest.targets import resolve
from attentest.targets.adapt import Unclear

SOURCE = (SUPPORT / "wild_language_models" / "llama.py").read_text()
TABLE = "def precompute_freqs_cis("
SLICE = "self.freqs_cis[start_pos : start_pos + seqlen]"
MADE = "precompute_freqs_cis(self.head_dim, seqlen, self.theta)"
FIRST = "        self.freqs_cis = precompute"
KEPT = "        self.head_dim, self.theta = params.dim // params.n_heads, params.rope_theta\n"
FORMULA = "language_model.formula"


def written(folder: Path, *changes: tuple[str, str]) -> str:
    """Write the model with a remembered table and `changes` to `folder`; return it as a target."""
    text = SOURCE.replace("import math\n", "import functools\nimport math\n")
    text = text.replace(".float().reshape", ".reshape").replace("(h)).float()", "(h))")
    remembered = ((TABLE, f"@functools.cache\n{TABLE}"), (SLICE, MADE), (FIRST, KEPT + FIRST))
    for old, new in (*remembered, *changes):
        assert old in text
        text = text.replace(old, new)
    (folder / "model.py").write_text(text)
    return f"{folder / 'model.py'}:Transformer"


@pytest.mark.proof
def test_a_model_with_such_a_table_is_judged_in_single_precision(tmp_path: Path) -> None:
    backend = resolve.load(written(tmp_path))
    assert "float64" not in backend.limits.precisions
    report = attentest.check(backend, clauses=[FORMULA])
    assert report[FORMULA].status == "pass", str(report)


def test_a_wrong_table_is_a_question(tmp_path: Path) -> None:
    wrong = "freqs = torch.outer(t, freqs)"
    with pytest.raises(Unclear, match="no option of the specification gives its numbers"):
        resolve.load(written(tmp_path, (wrong, wrong.replace("t, ", "t**1.001, "))))


@pytest.mark.proof
def test_a_small_mistake_at_some_lengths_is_no_rounding(tmp_path: Path) -> None:
    """It makes a difference of 5e-7, where the table that is kept makes one of 5e-8."""
    right = "freqs = torch.outer(t, freqs)"
    late = right.replace("(t, ", "(t * (1 + 6e-8 * (len(t) > 20)), ")
    with pytest.raises(Unclear, match="a mistake which shows at some sizes alone"):
        resolve.load(written(tmp_path, (right, late)))
