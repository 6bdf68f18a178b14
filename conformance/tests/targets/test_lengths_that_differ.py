"""Whole models that take sources and targets of one length, and raise where these differ."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited

from attentest.targets.adapt import Unclear

METHODS = (SUPPORT / "wild_models" / "by_methods.py").read_text(encoding="utf-8")
CROSSED = (
    "self.cross_attention(x, memory, memory, memory_mask)",
    "self.cross_attention(memory, x, x, memory_mask)",
)
TWO = ("src_seq_len, d_model", "src_seq_len, tgt_seq_len, d_model")
SAID = "raises where source and target differ in length"


@pytest.mark.proof
def test_model_with_a_length_of_each_side_that_raises_for_them_is_a_question(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unclear, match=r"at own\.py:\d+\).*--anyway .* lengths that differ"):
        adapted(tmp_path, "build_transformer", edited(METHODS, CROSSED, TWO))


FILLED = "assumed that source and target of one length alone are meant"


@pytest.mark.proof
def test_model_with_a_length_of_each_side_is_judged_anyway(tmp_path: Path) -> None:
    mistaken = edited(METHODS, CROSSED, TWO)
    backend = adapted(tmp_path, "build_transformer", mistaken, anyway=True)
    assert any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert broken(backend, "model.formula", "model.step-by-step")


@pytest.mark.proof
def test_right_model_with_a_length_of_each_side_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "build_transformer", edited(METHODS, TWO))
    assert not any(SAID in one for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.step-by-step")


@pytest.mark.proof
def test_model_with_one_length_that_raises_for_others_is_a_question_with_an_option(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unclear, match=r"--anyway .* judges it with lengths that differ"):
        adapted(tmp_path, "build_transformer", edited(METHODS, CROSSED))


def test_model_with_one_mask_for_both_sides_that_raises_is_a_question(tmp_path: Path) -> None:
    masked = edited(
        METHODS,
        TWO,
        CROSSED,
        ("decode(self, encoder_output, src_mask, tgt, tgt_mask)", "decode(self, memory, tgt)"),
        (
            "layer(x, tgt_mask, encoder_output, src_mask)",
            "layer(x, torch.ones(1), memory, 1 + 0 * memory[:, :1, :1, None])",
        ),
    )
    with pytest.raises(Unclear, match="unless equal lengths alone are meant"):
        adapted(tmp_path, "build_transformer", masked)


@pytest.mark.proof
def test_model_with_one_length_that_raises_for_others_is_judged_anyway(tmp_path: Path) -> None:
    mistaken = edited(METHODS, CROSSED)
    backend = adapted(tmp_path, "build_transformer", mistaken, anyway=True)
    assert broken(backend, "model.formula", "model.step-by-step")


OF_QUERIES = edited(
    (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8"),
    ("x.reshape(batch, -1,", "x.reshape(batch, length,"),
    ("        max_length=100,\n", "        src_max_len=100,\n        tgt_max_len=100,\n"),
    ("self.src_pos = nn.Embedding(max_length,", "self.src_pos = nn.Embedding(src_max_len,"),
    ("self.tgt_pos = nn.Embedding(max_length,", "self.tgt_pos = nn.Embedding(tgt_max_len,"),
)


@pytest.mark.proof
def test_names_of_projections_are_read_where_no_call_shows_their_order(tmp_path: Path) -> None:
    named = edited(
        OF_QUERIES,
        ("self.q_lin, self.k_lin =", "self.qw, self.vw ="),
        ("self.v_lin, self.out_lin =", "self.kw, self.ow ="),
        *[(f"self.{a}(", f"self.{b}(") for a, b in (("q_lin", "qw"), ("k_lin", "kw"))],
        *[(f"self.{a}(", f"self.{b}(") for a, b in (("v_lin", "vw"), ("out_lin", "ow"))],
    )
    backend = adapted(tmp_path, "TransformerMT", named, anyway=True)
    written = backend.written()  # type: ignore[attr-defined]
    assert '"encoder.layers.*.self_attention.key": "enc.*.attention.kw"' in written
    assert all("invalid for input of size" in one for one in broken(backend, "model.formula"))


@pytest.mark.proof
def test_model_that_takes_lengths_of_queries_for_those_of_keys_is_filled(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "TransformerMT", OF_QUERIES)
    assert any(one.startswith(FILLED) for one in backend.assumed)  # type: ignore[attr-defined]
    assert not broken(backend, "model.formula", "model.padding-in-a-batch", "model.step-by-step")


@pytest.mark.proof
@pytest.mark.parametrize(
    "edit",
    [
        ("/ math.sqrt(hidden // self.heads)", "/ (hidden // self.heads)"),
        ("y = block(y, memory, tgt_mask, src_mask)", "y = block(y, memory, src_mask, tgt_mask)"),
    ],
)
def test_filling_excuses_no_mistake(edit: tuple[str, str], tmp_path: Path) -> None:
    assert asked_or_broken(tmp_path, "TransformerMT", OF_QUERIES, *edit, "model.formula")


def test_model_that_takes_lengths_of_queries_for_those_of_keys_is_a_strict_question(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unclear, match=r"invalid for input of size.*at own\.py:\d+\)"):
        adapted(tmp_path, "TransformerMT", OF_QUERIES, strict=True)
