"""Decoders that embed their tokens themselves: the stack of layers in them is judged."""

from pathlib import Path
from typing import Any

import pytest
from asking import is_asked_or_fails
from folders import SUPPORT
from proof import share

import attentest
from attentest.targets import file_modules
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.construction import construction
from attentest.targets.adapt.reading import Reading

SOUND = (SUPPORT / "wild_encoders" / "decoder.py").read_text()
CLAUSES = ["decoder.formula"]


KEYS_AND_VALUES = (
    SOUND.replace("def forward(self, dec, enc, trg", "def forward(self, dec, value, key, trg")
    .replace("self.cross(x, enc, enc,", "self.cross(x, key, value,")
    .replace("layer(x, enc_src, ", "layer(x, enc_src, enc_src, ")
)
"""Its layers are given the memory twice, as value and as key."""


def checked(folder: Path, text: str) -> Any:
    (folder / "decoder.py").write_text(text)
    return attentest.check(str(folder / "decoder.py:Decoder"), clauses=CLAUSES)


@pytest.mark.proof
def test_the_stack_of_a_sound_decoder_is_read_and_conforms(tmp_path):
    report = checked(tmp_path, SOUND)
    assert report.conforms, str(report)
    assert report.compared == len(CLAUSES)
    said = "\n".join(report.inferred)
    assert "it embeds its tokens itself: layers is judged, with embedded input" in said
    assert "memory=enc_src, source_mask=src_mask, target_mask=trg_mask" in said


@pytest.mark.proof
def test_layers_that_are_given_the_memory_twice_conform(tmp_path):
    assert KEYS_AND_VALUES.count("enc_src, enc_src") == 1
    report = checked(tmp_path, KEYS_AND_VALUES)
    assert report.conforms, str(report)


@share(2, rest=1)
@pytest.mark.parametrize("wrong", ["enc_src, self.table(trg)", "x, enc_src"])
def test_layers_that_are_given_another_memory_are_detected_or_asked_about(tmp_path, wrong):
    text = KEYS_AND_VALUES.replace("enc_src, enc_src", wrong)
    assert is_asked_or_fails(lambda: checked(tmp_path, text))


@pytest.mark.proof
@share(5)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("math.sqrt(q.size(-1))", "math.sqrt(k.size(2))"),
        ("self.cross(x, enc, enc, src_mask)", "self.cross(dec, enc, enc, src_mask)"),
        ("x = layer(x, enc_src, trg_mask, src_mask)", "x = layer(x, enc_src, None, src_mask)"),
        ("self.norm3(x + ", "self.norm2(x + "),
        ("scores.softmax(-1)", "scores.softmax(-2)"),
    ],
)
def test_mistakes_in_decoders_are_detected_or_asked_about(tmp_path, old, new):
    assert old in SOUND
    assert is_asked_or_fails(lambda: checked(tmp_path, SOUND.replace(old, new)))


def test_a_decoder_that_makes_its_mask_itself_is_one_question(tmp_path):
    inside = "trg_mask = torch.ones(trg.size(1), trg.size(1)).tril()\n        x = self.table"
    text = SOUND.replace("enc_src, trg_mask, src_mask):", "enc_src, src_mask):")
    with pytest.raises(Unclear, match="Name the class of its layers, DecoderLayer"):
        checked(tmp_path, text.replace("x = self.table", inside))


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("old", "new", "is_sound"),
    [
        ("", "", True),
        ("enc, enc, padding_mask", "enc, enc, None", False),
        ("dec, dec, dec, look_ahead_mask", "dec, dec, dec, padding_mask", False),
    ],
)
def test_masks_of_a_layer_may_be_named_by_what_they_hide(tmp_path, old, new, is_sound):
    text = SOUND.partition("class Decoder(")[0]
    for one, other in (("trg_mask", "look_ahead_mask"), ("src_mask", "padding_mask")):
        text = text.replace(one, other)
    assert old in text
    (tmp_path / "layer.py").write_text(text.replace(old, new) if old else text)
    target = str(tmp_path / "layer.py:DecoderLayer")

    def check() -> Any:
        return attentest.check(target, clauses=["decoder.layer-formula"])

    assert check().conforms if is_sound else is_asked_or_fails(check)


def test_output_width_of_a_decoder_with_a_table_is_its_vocabulary(tmp_path):
    (tmp_path / "decoder.py").write_text(SOUND.replace("dec_voc_size", "odim"))
    made = file_modules.load(tmp_path / "decoder.py").Decoder
    found = construction(made, "decoder", Reading()).fillings["odim"]
    assert found.settles == {"target_vocabulary"}


@pytest.mark.proof
def test_mistake_in_a_decoder_with_an_output_width_is_detected(tmp_path):
    text = SOUND.replace("dec_voc_size", "odim")
    assert "self.norm3(x + " in text
    text = text.replace("self.norm3(x + ", "self.norm2(x + ")
    assert is_asked_or_fails(lambda: checked(tmp_path, text))
