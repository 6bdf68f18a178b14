"""Copies of files that take long to run: they are made once, and not for each class and value."""

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
        self.body = nn.Transformer(D_MODEL, N_HEADS, N_LAYERS, N_LAYERS)

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
