"""Whole models: a norm or a scale that one side lacks, and functions that are part of them."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken, edited

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.reading import Reading
from attentest.targets.file_modules import load
from attentest.targets.language_models.recognition import is_language_model
from attentest.targets.members import members

WILD = SUPPORT / "wild_models"
ANNOTATED = (WILD / "annotated.py").read_text(encoding="utf-8")
METHODS = (WILD / "by_methods.py").read_text(encoding="utf-8")
NORM = "return self.norm(x)"


@pytest.mark.proof
def test_norm_behind_one_stack_that_is_not_called_is_a_violation(tmp_path: Path) -> None:
    alone = ANNOTATED.replace(NORM, f"{NORM} if len(rest) > 1 else x")
    backend = adapted(tmp_path, "make_model", alone)
    said = "encoder.norm is held and not called: a norm is missing behind the encoder"
    assert said in backend.assumed
    assert broken(backend, "model.formula")


@pytest.mark.proof
def test_norm_whose_weights_are_used_without_a_call_is_a_question(tmp_path: Path) -> None:
    by_hand = f"{NORM} if len(rest) > 1 else self.norm.a_2 * x"
    with pytest.raises(Unclear, match="is not called as a module"):
        adapted(tmp_path, "make_model", ANNOTATED.replace(NORM, by_hand))


@pytest.mark.proof
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_embeddings_that_are_scaled_on_one_side_are_meant_to_be_scaled(
    side: str, tmp_path: Path
) -> None:
    scale = f" * math.sqrt(self.{side}_embed.embedding_dim)"
    assert METHODS.count(scale) == 1
    backend = adapted(tmp_path, "build_transformer", METHODS.replace(scale, ""))
    assert backend.choices["embedding_scale"] == "sqrt-d"
    assert broken(backend, "model.formula")


ONE_TABLE = edited(
    METHODS, ("self.src_embed, self.tgt_embed = src_embed, tgt_embed", "self.src_embed = src_embed")
).replace("self.tgt_embed", "self.src_embed")


@pytest.mark.proof
@pytest.mark.parametrize("ids", ["src", "tgt"])
def test_table_of_both_sides_that_one_of_them_scales_is_meant_to_be_scaled(
    ids: str, tmp_path: Path
) -> None:
    scaled = f"self.src_embed({ids}) * math.sqrt(self.src_embed.embedding_dim)"
    source = edited(ONE_TABLE, (scaled, f"self.src_embed({ids})"))
    backend = adapted(tmp_path, "build_transformer", source)
    assert backend.choices["embedding_scale"] == "sqrt-d"
    assert broken(backend, "model.formula")


@pytest.mark.proof
def test_embeddings_that_are_scaled_on_no_side_are_a_choice(tmp_path: Path) -> None:
    source = METHODS
    for side in ("src", "tgt"):
        source = source.replace(f" * math.sqrt(self.{side}_embed.embedding_dim)", "")
    backend = adapted(tmp_path, "build_transformer", source)
    assert backend.choices["embedding_scale"] == "none"
    assert not broken(backend, "model.formula")


@pytest.mark.proof
def test_function_that_turns_queries_is_part_of_the_decoder_only_model_that_calls_it() -> None:
    file = SUPPORT / "wild_language_models" / "every_two.py"
    inside = {one.name: one.inside for one in members(str(file)) or ()}
    assert inside["apply_rotary_pos_emb"] == "GPTJForCausalLM"
    assert not inside["fixed_pos_embedding"]


SOUNDS = """
import torch
from torch import nn


class Transcriber(nn.Module):
    def __init__(self, n_mels, n_vocab, d_model, n_heads):
        super().__init__()
        self.conv = nn.Conv1d(n_mels, d_model, 3, padding=1)
        self.embedding = nn.Embedding(n_vocab, d_model)
        self.encoder = nn.TransformerEncoderLayer(d_model, n_heads, batch_first=True)
        self.decoder = nn.TransformerDecoderLayer(d_model, n_heads, batch_first=True)
        self.out = nn.Linear(d_model, n_vocab)

    def forward(self, mel, tokens):
        memory = self.encoder(self.conv(mel).mT)
        later = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.out(self.decoder(self.embedding(tokens), memory, tgt_mask=later))
"""


@pytest.mark.proof
def test_model_of_sounds_is_a_question_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="hands one of its inputs to a convolution, conv,"):
        adapted(tmp_path, "Transcriber", SOUNDS, component="model")


OPTIONAL = """
from torch import nn


class SmallSequenceLM(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, input_ids=None, attention_mask=None, decoder_input_ids=None):
        if decoder_input_ids is None:
            decoder_input_ids = input_ids.roll(1, -1)
        return self.out(self.embed(input_ids).mean(1, True) + self.embed(decoder_input_ids))
"""


def test_ids_of_a_decoder_that_may_be_left_out_make_no_decoder_only_model(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OPTIONAL)
    model = load(tmp_path / "own.py").SmallSequenceLM
    assert not is_language_model(model, Reading(), "SmallSequenceLM")
