"""The line of a mask of order that a decoder-only model makes with a diagonal too many."""

from pathlib import Path

import pytest
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets.whole import AdaptedWhole

WILD = SUPPORT / "wild_language_models"


@share(2, rest=1)
@pytest.mark.parametrize(
    ("target", "right", "wrong"),
    [
        ("mini.py:GPT", ".triu(1)", ".triu(2)"),
        ("head_norms.py:Qwen3Model", "diagonal=1", "diagonal=2"),
    ],
)
def test_the_line_is_that_of_the_mask(target: str, right: str, wrong: str, tmp_path: Path) -> None:
    file, _, name = target.partition(":")
    source = (WILD / file).read_text()
    assert right in source
    (tmp_path / file).write_text(source.replace(right, wrong))
    backend = attentest.adapted(f"{tmp_path / file}:{name}")
    assert isinstance(backend, AdaptedWhole)
    assert backend.mistaken is not None
    assert wrong in backend.mistaken.code
