"""Whole models whose list holds one layer several times."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, edited

from attentest.targets.adapt import Unclear

FLAT = (SUPPORT / "wild_models" / "flat.py").read_text(encoding="utf-8")
SIDES = {
    "encoder": ("[EncoderLayer(*sizes) for _ in range(n_layers)]", "[EncoderLayer(*sizes)]"),
    "decoder": ("[DecoderLayer(*sizes) for _ in range(n_layers)]", "[DecoderLayer(*sizes)]"),
}


@pytest.mark.parametrize("side", ["encoder", pytest.param("decoder", marks=pytest.mark.proof)])
def test_encoder_decoder_whose_layers_are_one_module_is_a_question_that_says_so(
    tmp_path: Path, side: str
) -> None:
    own, one = SIDES[side]
    with pytest.raises(Unclear, match=r"its layers are one module that a list holds several"):
        adapted(tmp_path, "Transformer", edited(FLAT, (own, f"{one} * n_layers")))
