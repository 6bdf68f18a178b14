"""Whole models whose settings are mappings of a library, and factors of the inner width in them."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

CONFIGURED = (SUPPORT / "wild_models" / "configured.py").read_text(encoding="utf-8")
START, END = (
    CONFIGURED.index("@dataclass\nclass TranslationConfig"),
    CONFIGURED.rindex("@dataclass"),
)
MAPPING = edited(
    CONFIGURED[:START] + CONFIGURED[END:],
    ("from dataclasses", "from collections import UserDict as DictConfig\nfrom dataclasses"),
    ("config: TranslationConfig", "config: DictConfig"),
)
FACTOR = edited(
    MAPPING, ("config.intermediate_size", "width * config.encoder_feed_forward_expansion_factor")
)


@pytest.mark.proof
@pytest.mark.parametrize("code", [MAPPING, FACTOR], ids=["width", "factor"])
def test_settings_of_a_library_are_an_object_with_the_fields_that_are_read(
    code: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "TranslationTransformer", code)
    assert not broken(backend, "model.formula", "model.parameter-gradient")


@pytest.mark.proof
def test_mistake_in_a_model_with_settings_of_a_library_is_detected(tmp_path: Path) -> None:
    unscaled = edited(FACTOR, (" * (width // self.heads) ** -0.5", ""))
    backend = adapted(tmp_path, "TranslationTransformer", unscaled)
    assert broken(backend, "model.formula")
