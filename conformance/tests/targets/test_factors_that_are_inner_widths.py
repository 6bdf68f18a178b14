"""Whole models that hand on a factor of the inner width as the inner width itself."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

CODE = (SUPPORT / "wild_models" / "torch_sequence_first.py").read_text(encoding="utf-8")
ITSELF = edited(
    CODE,
    ("dim_feedforward: int = 512", "forward_expansion: int = 4"),
    ("dim_feedforward=dim_feedforward", "dim_feedforward=forward_expansion"),
)
MULTIPLE = edited(ITSELF, ("=forward_expansion", "=forward_expansion * emb_size"))
SAID = "assumed that forward_expansion is the inner width itself"


@pytest.mark.proof
def test_factor_that_is_the_inner_width_is_read_as_that_and_printed(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", ITSELF)
    assert any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.parameter-gradient")


@pytest.mark.proof
def test_factor_that_multiplies_the_width_is_read_as_one(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "Seq2SeqTransformer", MULTIPLE)
    assert not any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula")


@pytest.mark.proof
def test_mistake_in_a_model_whose_factor_is_the_inner_width_is_detected(tmp_path: Path) -> None:
    unmasked = edited(ITSELF, ("            memory_key_padding_mask,\n", "            None,\n"))
    assert broken(adapted(tmp_path, "Seq2SeqTransformer", unmasked), "model.formula")
