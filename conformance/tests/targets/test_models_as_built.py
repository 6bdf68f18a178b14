"""Whole models that raise in the precision that they are built in, and answer in float64."""

import pytest
from folders import SUPPORT

import attentest
from attentest.targets.adapt import Unclear

MODELS = [
    ("wild_language_models/nano.py:GPT", "self.lm_head(x)"),
    ("wild_models/torch_batch_first.py:TransformerModel", "self.out(states)"),
]


@pytest.mark.proof
@pytest.mark.parametrize(("target", "call"), MODELS, ids=["decoder-only", "encoder-decoder"])
def test_a_model_that_raises_as_it_is_built_is_a_question(target, call, tmp_path):
    """Numbers of another precision raise in the first call of every user."""
    file, _, name = target.partition(":")
    source = (SUPPORT / file).read_text()
    assert source.count(call) == 1
    mixed = call.replace(")", " + torch.zeros(1, dtype=torch.float64))")
    (tmp_path / "mixed.py").write_text(source.replace(call, mixed))
    mixed_model = str(tmp_path / f"mixed.py:{name}")
    with pytest.raises(Unclear, match=r"As it is built, in torch.float32, its call raises Runtime"):
        attentest.adapted(mixed_model)
    limits = attentest.adapted(mixed_model, anyway=True).limits
    assert "float64" in limits.precisions
    assert "float32" not in limits.precisions
