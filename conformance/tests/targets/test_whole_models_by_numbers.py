"""Whole models whose constants, sines and masks are right in a way of their own, or inverted."""

from pathlib import Path
from typing import cast

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken
from proof import share

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.results.verdict import Status
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.reading import Reading
from attentest.targets.models import limits
from attentest.targets.models.building import building
from attentest.targets.resolve import module_of
from attentest.targets.whole import AdaptedWhole
from attentest_spec import Backend, Choices

SOURCE = (SUPPORT / "wild_models" / "namespace.py").read_text(encoding="utf-8")
START, END = SOURCE.index("future = torch.triu("), SOURCE.index("        padding = prev_")
FUTURE = SOURCE[START:END].rstrip()
INCLUSIVE = ("(math.log(10000) / half)", "(math.log(10000) / (half - 1))")


def read(folder: Path, *edits: tuple[str, str]) -> AdaptedWhole:
    text = SOURCE
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    (folder / "edited.py").write_text(text, encoding="utf-8")
    backend = attentest.adapted(str(folder / "edited.py:TransformerModel"))
    assert isinstance(backend, AdaptedWhole)
    return backend


def formula(backend: AdaptedWhole) -> Status:
    return judge(Bench.for_status(backend, effort=0.1), "model.formula").status


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("ahead", [1, 2])
def test_a_least_number_of_the_default_precision_is_judged_in_float32(
    ahead: int, tmp_path: Path
) -> None:
    mask = "torch.full((time, time), torch.finfo(x.dtype).min)"
    backend = read(tmp_path, (FUTURE, f"future = torch.triu({mask}, {ahead})"))
    assert backend.limits.finest == "float32"
    assert formula(backend) is (Status.PASS if ahead == 1 else Status.VIOLATION)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("wrong", [False, True])
def test_sines_that_need_a_width_of_four_are_judged_at_wider_ones(
    *, wrong: bool, tmp_path: Path
) -> None:
    late = [("self.positions[: tokens.size(1)]", "self.positions[1 : tokens.size(1) + 1]")] * wrong
    backend = read(tmp_path, INCLUSIVE, *late)
    assert backend.limits.least_width == 4
    assert backend.choices["positional_encoding"] == "halves-inclusive"
    assert formula(backend).fails_run is wrong


@pytest.mark.proof
def test_positions_that_begin_behind_the_id_of_padding_are_a_question(tmp_path: Path) -> None:
    real = "tokens.ne(self.padding_idx)"
    counted = f"self.positions[({real}.cumsum(1) * {real}) + self.padding_idx]"
    with pytest.raises(Unclear, match="begin behind the id of padding"):
        read(
            tmp_path,
            ("self.positions[: tokens.size(1)]", counted),
            ("sinusoid(args.max_positions,", "sinusoid(args.max_positions + args.pad + 1,"),
        )


def test_table_without_room_for_one_offset_begins_behind_the_id_of_padding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fits(_: object, choices: Choices, **pads: int) -> bool | None:
        return True if choices.position_offset == pads["source_pad"] + 1.0 else None

    monkeypatch.setattr(limits, "fits_at", fits)
    with pytest.raises(Unclear, match="begin behind the id of padding"):
        limits.demand_one_offset("Model", cast("Backend", None), {"position_offset": 1.0})


@pytest.mark.exhaustive
def test_an_inverted_mask_of_padding_is_named(tmp_path: Path) -> None:
    inverted = ("src_tokens.eq(", "src_tokens.ne(")
    with pytest.raises(Unclear, match="a mask of padding is inverted and hides every token"):
        read(tmp_path, inverted)
    hides = ".masked_fill(key_padding_mask[:, None, None], {})".format
    backend = read(tmp_path, inverted, (hides('float("-inf")'), hides("-1e30")))
    assert any("it makes of its ids is inverted" in one for one in backend.assumed)
    assert formula(backend) is Status.VIOLATION


def test_a_vocabulary_beside_that_of_the_source_is_the_targets(tmp_path: Path) -> None:
    names = {
        "src_vocab_size": "n_source_vocab",
        "tgt_vocab_size": "n_vocab",
        "encoder_embed_dim": "n_text_state",
        "decoder_embed_dim": "n_text_state",
        "max_positions": "n_text_ctx",
        "encoder_layers)": "n_text_layer)",
    }
    text = SOURCE
    for old, new in names.items():
        text = text.replace(f"args.{old}", f"args.{new}")
    (tmp_path / "text.py").write_text(text, encoding="utf-8")
    made = module_of(str(tmp_path / "text.py")).TransformerModel
    expression = building(made, "TransformerModel", Reading()).expression
    for said in (
        "n_source_vocab=sizes.source_vocabulary",
        "n_vocab=sizes.target_vocabulary",
        "n_text_state=sizes.d_model",
        "n_text_ctx=sizes.max_length",
    ):
        assert said in expression


ENCODER = """
import torch
from torch import nn


class SentenceEncoder(nn.Module):
    def __init__(self, vocab, width, layers, heads, feedforward):
        super().__init__()
        self.words = nn.Embedding(vocab, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, heads, feedforward, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, ids):
        padding = ids == 0
        return self.encoder(self.words(ids), src_key_padding_mask=padding)
"""


@pytest.mark.proof
def test_an_encoder_that_sees_its_tokens_conforms(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SentenceEncoder", ENCODER)
    assert not any("inverted" in one for one in backend.assumed)
    assert broken(backend, "encoder.formula") == []


@pytest.mark.proof
def test_an_encoder_that_hides_its_tokens_is_read_around_its_mask(tmp_path: Path) -> None:
    inverted = ENCODER.replace("ids == 0", "ids != 0")
    backend = adapted(tmp_path, "SentenceEncoder", inverted)
    assert any("makes of its ids is inverted" in one for one in backend.assumed)
    assert broken(backend, "encoder.formula")
