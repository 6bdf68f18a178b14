"""Copies of files with other constants: one for all classes, one of a slow file for all."""

import sys
from pathlib import Path

import pytest

from attentest.targets.adapt.reading import Reading
from attentest.targets.constants import copies, models
from attentest.targets.resolve import module_of

CODE = """
from torch import nn

D_MODEL, N_HEADS, N_LAYERS, VOCAB_SIZE = 512, 8, 6, 1000


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(VOCAB_SIZE, D_MODEL)
        self.body = nn.Transformer(D_MODEL, N_HEADS, N_LAYERS, N_LAYERS, batch_first=True)

    def forward(self, src, tgt):
        return self.body(self.table(src), self.table(tgt))


class Seq2SeqTransformer(Transformer):
    pass


class OtherTransformer(Transformer):
    pass
"""


def test_slow_file_is_copied_once_for_all_classes_and_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    class Counted(copies.Copies):
        def __init__(self, thing: object, values: dict[str, object]) -> None:
            made.append(values)
            super().__init__(thing, values)

    monkeypatch.setattr(copies, "Copies", Counted)
    monkeypatch.setattr(models, "SECONDS", -1.0)  # whatever takes any time is slow
    file = tmp_path / "slow.py"
    file.write_text(CODE)
    module = module_of(str(file))
    for name in ("Transformer", "Seq2SeqTransformer", "OtherTransformer"):
        assert list(models.size_constants(getattr(module, name), Reading(), ())) == []
    assert len(made) == 1


@pytest.mark.parametrize(("fails", "number"), [("", 1), ("table = VOCAB_SIZE + failing", 2)])
def test_copy_serves_all_classes_of_a_file_where_all_of_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str, number: int
) -> None:
    file = tmp_path / "several.py"
    file.write_text(CODE + f"\n\nfailing = 1 if VOCAB_SIZE == 1000 else ''\n{fails}\n")
    module = module_of(str(file))
    monkeypatch.setattr(copies.Copies, "last", {})
    first, second = (
        copies.copied(getattr(module, name), VOCAB_SIZE=23)
        for name in ("Transformer", "OtherTransformer")
    )
    assert len(copies.Copies.last) == number
    assert (first.__module__ == second.__module__) == (number == 1)
    assert issubclass(second, first) == (number == 1)
    assert vars(sys.modules[first.__module__])["VOCAB_SIZE"] == 23
