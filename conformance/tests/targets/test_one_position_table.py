"""Whole models with one trained table of positions for both sides."""

from pathlib import Path

import pytest
from folders import SUPPORT

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

SOURCE = (SUPPORT / "wild_models" / "by_lengths.py").read_text()
SIDES = "self.places_x, self.places_y = nn.Embedding(max_len, adim), nn.Embedding(max_len, adim)"
ONE = (
    SOURCE.replace(SIDES, "self.places = nn.Embedding(max_len, adim)")
    .replace("self.places_x.", "self.places.")
    .replace("self.places_y.", "self.places.")
)


def read(folder: Path, *edits: tuple[str, str]) -> Backend:
    text = ONE
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "one_position_table.py").write_text(text)
    return attentest.adapted(str(folder / "one_position_table.py:Seq2SeqTransformer"))


def is_broken(backend: Backend) -> bool:
    bench = Bench.for_status(backend, effort=0.2)
    return judge(bench, "model.formula").status is not Status.PASS


@pytest.mark.proof
def test_a_model_with_one_table_is_read_and_conforms(tmp_path: Path) -> None:
    backend = read(tmp_path)
    assumed = "\n".join(backend.assumed)
    assert "one trained table of positions for both sides is meant" in assumed
    assert "positional_encoding" not in assumed
    assert not is_broken(backend)
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not is_broken(attentest.adapted(str(tmp_path / "written.py:backend")))


def test_rows_of_one_table_that_are_not_added_in_order_are_one_question(tmp_path: Path) -> None:
    rows = "self.places.weight[: len(steps)]"
    with pytest.raises(Unclear, match=r"are not added to those of both sides .* or the logits"):
        read(tmp_path, (rows, f"{rows}.flip(0)"))


@pytest.mark.proof
def test_mistakes_in_models_with_one_table_are_detected(tmp_path: Path) -> None:
    assert is_broken(read(tmp_path, ("math.sqrt(self.width)", "self.width")))
