"""Whole models with a limit of the length of each side, called as no other is."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

SOURCE = (SUPPORT / "wild_models" / "additive.py").read_text()


@pytest.mark.proof
@pytest.mark.parametrize("names", [("max_pos_src", "max_pos_tgt"), ("bound_a", "bound_b")])
def test_two_limits_of_the_length_are_given_the_greatest(names: list[str], tmp_path: Path) -> None:
    first, second = names
    head, body = SOURCE.split("class Transformer(")
    one = body.replace("max_length,", f"{first}, {second},", 1)
    code = head + "class Transformer(" + one.replace("max_length)", f"min({first}, {second}))")
    backend = adapted(tmp_path, "Transformer", code)
    assert broken(backend, "model.formula") == []
    assert f"{second}=sizes.max_length" in "\n".join(backend.understood)
