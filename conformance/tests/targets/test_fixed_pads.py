"""Whole models whose id of padding is a constant of their code."""

from pathlib import Path

import pytest
from folders import SUPPORT

from attentest.targets.adapt.reading import Reading
from attentest.targets.models.building import building
from attentest.targets.models.inferring import infer
from attentest.targets.resolve import module_of

SOURCE = (SUPPORT / "wild_models" / "namespace.py").read_text(encoding="utf-8")


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_a_constant_id_of_padding_is_found(pad: int, tmp_path: Path) -> None:
    file = tmp_path / "constant.py"
    file.write_text(SOURCE.replace("args.pad\n", f"{pad}\n"))
    model = module_of(str(file)).TransformerModel
    built = building(model, "TransformerModel", Reading())
    found = infer(built, "TransformerModel", "", Reading())
    assert (found.pads, found.pad) == ("fixed", pad)
    assert not found.doubts


def test_an_id_of_padding_that_the_constructor_takes_is_not_fixed(tmp_path: Path) -> None:
    file = tmp_path / "handed.py"
    file.write_text(SOURCE)
    model = module_of(str(file)).TransformerModel
    built = building(model, "TransformerModel", Reading())
    assert infer(built, "TransformerModel", "", Reading()).pad is None


CALLER = SUPPORT / "wild_models" / "annotated.py"


@pytest.mark.parametrize("row", ["", ", padding_idx=0"])
def test_a_row_that_is_never_trained_is_that_of_padding_where_the_caller_makes_masks(
    row: str, tmp_path: Path
) -> None:
    text = CALLER.read_text(encoding="utf-8")
    assert "nn.Embedding(vocab, d_model)" in text
    file = tmp_path / "rows.py"
    file.write_text(
        text.replace("nn.Embedding(vocab, d_model)", f"nn.Embedding(vocab, d_model{row})")
    )
    built = building(module_of(str(file)).make_model, "make_model", Reading())
    found = infer(built, "make_model", "", Reading())
    assert (found.pads, found.pad) == (("fixed", 0) if row else ("call", None))
