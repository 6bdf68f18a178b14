"""Whole models whose trained tables of positions have a fixed number of rows."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest_spec import Backend

FIXED = (
    (SUPPORT / "wild_models" / "by_lengths.py")
    .read_text()
    .replace("        max_len=512,\n", "")
    .replace("nn.Embedding(max_len, adim)", "nn.Embedding(20, adim)")
)
TABLE = "self.places_y = nn.Embedding(20, adim), nn.Embedding(20, adim)"
PARAMETERS = [
    (TABLE, "self.places_y = (nn.Parameter(torch.zeros(1, 20, adim)) for _ in range(2))"),
    ("self.places_x.weight[: xs_pad.size(1)]", "self.places_x[:, : xs_pad.size(1)]"),
    ("self.places_y.weight[: len(steps)]", "self.places_y[:, : len(steps)]"),
]
LIMITED = [("        hidden_x = ", "        assert ilens.max() <= 20\n        hidden_x = ")]


def read(folder: Path, edits: list[tuple[str, str]]) -> Backend:
    text = FIXED
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    (folder / "fixed_rows.py").write_text(text)
    return attentest.adapted(str(folder / "fixed_rows.py:Seq2SeqTransformer"))


def is_broken(backend: Backend) -> bool:
    bench = Bench.for_status(backend, effort=0.2)
    return judge(bench, "model.formula").status is not Status.PASS


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize("edits", [[], PARAMETERS, LIMITED], ids=["tables", "parameters", "limit"])
def test_models_with_a_fixed_number_of_rows_are_read_and_conform(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    backend = read(tmp_path, edits)
    assert "assumed that the 20 rows of places_x" in "\n".join(backend.assumed)
    assert backend.limits.length == 20
    assert not is_broken(backend)
    (tmp_path / "written.py").write_text(backend.written())  # type: ignore[attr-defined]
    assert not is_broken(attentest.adapted(str(tmp_path / "written.py:backend")))


@pytest.mark.exhaustive
def test_mistakes_in_models_with_a_fixed_number_of_rows_are_detected(tmp_path: Path) -> None:
    last = ("self.places_y[:, : len(steps)]", "self.places_y[:, -len(steps) :]")
    assert is_broken(read(tmp_path, [*PARAMETERS, last]))


def test_a_fixed_number_of_rows_with_another_first_one_is_one_question(tmp_path: Path) -> None:
    later = ("self.places_x.weight[: xs_pad.size(1)]", "self.places_x.weight[2:][: xs_pad.size(1)]")
    with pytest.raises(Unclear, match="does not get the first row"):
        read(tmp_path, [later])
