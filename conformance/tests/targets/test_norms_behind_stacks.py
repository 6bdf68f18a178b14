"""Whole models: norms behind stacks that one of them lacks, or that nothing calls."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear

ANNOTATED = (SUPPORT / "wild_models/annotated.py").read_text(encoding="utf-8")
INPUTS = "x + self.dropout(inner(self.norm(x)))"
SUMS = "self.norm(x + self.dropout(inner(x)))"
BEHIND = "LayerNorm(layer.size)"
CALLED = "return self.norm(x)"
AFTERWARDS = edited(ANNOTATED, (INPUTS, SUMS))
MISSING = "no norm is behind the encoder, and one is behind the decoder"


def behind(side: str, source: str) -> str:
    """Return `source` with a norm behind the stack of one `side` alone."""
    alone = f"{BEHIND} if isinstance(layer, {side}Layer) else nn.Identity()"
    return edited(source, (BEHIND, alone))


@pytest.mark.proof
@pytest.mark.parametrize("side", ["Encoder", "Decoder"])
def test_norm_of_one_stack_alone_is_a_mistake_where_layers_norm_inputs(
    side: str, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "make_model", behind(side, ANNOTATED))
    sides = ("decoder", "encoder") if side == "Encoder" else ("encoder", "decoder")
    said = f"no norm is behind the {sides[0]}, and one is behind the {sides[1]}"
    assert any(one.startswith(said) for one in backend.assumed)
    assert broken(backend, "model.formula")
    exec(backend.written(), {})


@pytest.mark.proof
def test_norm_of_one_stack_alone_is_a_question_where_layers_norm_sums(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match=r"behind one of its stacks, decoder\.norm, and none behind"):
        adapted(tmp_path, "make_model", behind("Decoder", AFTERWARDS))


@pytest.mark.proof
def test_norm_of_one_stack_alone_is_a_question_where_asked_strictly(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "make_model", behind("Decoder", ANNOTATED), strict=True)


@pytest.mark.proof
def test_idle_norms_behind_stacks_whose_layers_norm_sums_are_left_out(tmp_path: Path) -> None:
    idle = edited(AFTERWARDS, (CALLED, "return x"))
    backend = adapted(tmp_path, "make_model", idle)
    assert backend.fits
    assert any("encoder.norm and decoder.norm is held" in one for one in backend.assumed)
    assert not broken(backend, "model.formula", "model.parameter-gradient")
    exec(backend.written(), {})


@pytest.mark.proof
def test_idle_norms_behind_stacks_whose_layers_norm_inputs_are_missing(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "make_model", edited(ANNOTATED, (CALLED, "return x")))
    assert "embedding_norm" not in backend.choices or backend.choices["embedding_norm"] == "none"
    for side in ("encoder", "decoder"):
        said = f"{side}.norm is held and not called: a norm is missing behind the {side}"
        assert said in backend.assumed
    assert broken(backend, "model.formula")


@pytest.mark.proof
def test_idle_norms_excuse_no_other_mistake(tmp_path: Path) -> None:
    mistaken = edited(AFTERWARDS, (CALLED, "return x"), ("math.sqrt(self.d_k)", "self.d_k"))
    backend = adapted(tmp_path, "make_model", mistaken)
    assert broken(backend, "model.formula")
