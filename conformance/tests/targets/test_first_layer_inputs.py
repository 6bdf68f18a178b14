"""The embedding and positions of encoders and decoders that embed their tokens themselves."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import broken
from proof import share

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.adapt.adaptation import Adapted
from attentest_spec import Backend

WILD = SUPPORT / "wild_encoders"
SINES = "pe[:, 0, 0::2] = torch.sin(position * div_term)"
PLACED = "return self.dropout(x + self.pe[: x.size(0)])"
SCALED = "self.embedding(src.t()) * math.sqrt(self.d_model)"
LEARNED = "x = self.table(trg) + self.rows[: trg.size(1)]"
STEPS, DOUBLED = "torch.arange(0, d_model, 2)", "torch.arange(0, 2 * d_model, 4)"
CLASSES = {"classifier.py": "SentimentClassifier", "decoder.py": "Decoder", "bert_like.py": "BERT"}


SOUND = [
    ("classifier.py", SCALED, "self.embedding(src.t())", "embedding_scale=none"),
    ("classifier.py", SCALED, SCALED.replace(".t())", ".t().clone())"), ""),
    ("classifier.py", PLACED, "return self.dropout(x)", "positional_encoding=none"),
    ("classifier.py", PLACED, "return self.dropout(x + self.pe[: x.size(0)].to(x))", ""),
    ("classifier.py", "[: x.size(0)]", "[1 : x.size(0) + 1]", "position_offset=1"),
    ("decoder.py", LEARNED, LEARNED, "positional_encoding=learned"),
    ("bert_like.py", "", "", "embedding_norm=present"),
]
"""A file, an edit, and what is assumed of the input of the first layer, "" for nothing."""

POSITIONS = [
    (SINES, SINES.replace("sin(", "cos("), "a table of positions that no option"),
    ("10000.0", "1000.0", "row 1 begins with"),
    ("/ d_model)", "/ (d_model + 2))", "a table of positions that no option"),
    (PLACED, "return self.dropout(x + 2 * self.pe[: x.size(0)])", "sines times 2"),
    (PLACED, "return self.dropout(x + self.pe[: x.size(1), 0])", "differ between samples"),
]
"""An edit that injects a mistake in positions that no parameter holds, and what is said of them."""

WRONG = [
    ("classifier.py", STEPS, DOUBLED, "computed with positional_encoding=doubled-exponent"),
    ("classifier.py", "math.sqrt(self.d_model)", "self.d_model", r"times 20 \(d_model\)"),
    ("classifier.py", "* math.sqrt(", "/ math.sqrt(", r"times 0\.2236 \(1 / sqrt\(d_model\)\)"),
    ("classifier.py", "x + self.pe[", "x * self.pe[", "not the rows of the tokens"),
    ("classifier.py", "(x + self.pe[: x.size(0)])", "(3 * (x + self.pe[: x.size(0)]))", "times 13"),
    ("decoder.py", "[: trg.size(1)]", "[: trg.size(1)].flip(0)", "not those of the positions"),
    ("decoder.py", "[: trg.size(1)]", "[trg.size(1)]", "one row of rows for all positions"),
    ("value_key_query.py", "return out", "return out + words", "returns other numbers"),
    ("encoder.py", "return self.norm(x)", "return x", "holds norm, which no call of it uses"),
    ("decoder.py", LEARNED, f"{LEARNED} + enc_src.mean(1, True)", "differ between samples"),
]
"""A file, an edit that injects a mistake, and what the question says."""

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def read(folder: Path, file: str, old: str, new: str, *, strict: bool = False) -> Backend:
    source = (WILD / file).read_text()
    assert old in source
    (folder / file).write_text(source.replace(old, new))
    return attentest.adapted(str(folder / f"{file}:{CLASSES.get(file, 'Encoder')}"), strict=strict)


@share(4)
@pytest.mark.parametrize(("file", "old", "new", "option"), SOUND)
def test_inputs_by_an_option_are_read_and_another_than_the_papers_is_assumed(
    file: str, old: str, new: str, option: str, tmp_path: Path
) -> None:
    backend = read(tmp_path, file, old, new)
    assert "input of its first layer is that of the reference" in "\n".join(backend.understood)
    names = ("embedding_", "position")
    assumed = [
        one for one in backend.assumed if one.startswith(tuple(f"assumed {n}" for n in names))
    ]
    assert bool(assumed) == bool(option)
    assert option in "\n".join(assumed)


@share(7)
@pytest.mark.parametrize(("file", "old", "new", "said"), WRONG)
def test_inputs_by_no_option_are_one_question(
    file: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(Unclear, match=said):
        read(tmp_path, file, old, new)


@share(2)
@pytest.mark.parametrize(("old", "new", "said"), POSITIONS)
def test_positions_by_no_option_are_judged_besides_the_layers(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    backend = read(tmp_path, "classifier.py", old, new)
    assert isinstance(backend, Adapted)
    assert any(said in one for one in backend.assumed)
    assert broken(backend, "positional_encoding.formula")
    assert not broken(backend, "encoder.formula")
    with pytest.raises(Unclear, match=said):
        read(tmp_path, "classifier.py", old, new, strict=True)


def test_positions_of_texts_of_one_length_are_judged_besides_the_layers(tmp_path: Path) -> None:
    source = """
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, d_ff, num_layers, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model, padding_idx=0)
        angles = torch.arange(max_len)[:, None] / 500 ** (torch.arange(0, d_model, 2) / d_model)
        rows = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)
        self.register_buffer("rows", rows, persistent=False)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, nhead, d_ff, batch_first=True)
            for _ in range(num_layers)
        )

    def forward(self, ids):
        x, hidden = self.embed(ids) + self.rows, ids == 0
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=hidden)
        return x
"""
    for base, conforms in (("500 **", False), ("10000 **", True)):
        (tmp_path / "own.py").write_text(source.replace("500 **", base))
        backend = attentest.adapted(str(tmp_path / "own.py:Classifier"))
        assert ("positional_encoding" in backend.components) != conforms
        assert conforms or broken(backend, "positional_encoding.formula")


def test_positions_by_an_option_are_judged_with_the_layers_alone(tmp_path: Path) -> None:
    assert [*read(tmp_path, "classifier.py", SCALED, SCALED).components] == ["encoder"]


def test_an_input_by_another_option_than_the_papers_is_a_question_where_that_is_strict(
    tmp_path: Path,
) -> None:
    with pytest.raises(Unclear, match="embedding_scale=none, where sqrt-d is"):
        read(tmp_path, "classifier.py", SCALED, "self.embedding(src.t())", strict=True)


def test_a_doubled_exponent_that_is_declared_is_read(tmp_path: Path) -> None:
    (tmp_path / "classifier.py").write_text(
        (WILD / "classifier.py").read_text().replace(STEPS, DOUBLED)
    )
    choices = {"positional_encoding": "doubled-exponent"}
    backend = attentest.adapted(
        str(tmp_path / "classifier.py:SentimentClassifier"), choices=choices
    )
    assert "positional_encoding=doubled-exponent" in "\n".join(backend.understood)


def test_padding_that_reaches_no_layer_is_an_assumption(tmp_path: Path) -> None:
    source = (WILD / "encoder.py").read_text()
    edited = source.replace("layer(x, key_padding_mask=padding)", "layer(x)")
    for text, unhidden in ((source, False), (edited, True)):
        (tmp_path / "encoder.py").write_text(text)
        backend = attentest.adapted(str(tmp_path / "encoder.py:Encoder"))
        assert any("hides no padding" in one for one in backend.assumed) == unhidden


def test_sines_that_a_frozen_table_holds_are_sines(tmp_path: Path) -> None:
    table = "nn.Embedding.from_pretrained(pe[:, 0], freeze=True)"
    source = (WILD / "classifier.py").read_text()
    source = source.replace('self.register_buffer("pe", pe)', f"self.pe = {table}")
    rows = "self.pe(torch.arange(x.size(0))[:, None])"
    (tmp_path / "classifier.py").write_text(source.replace("self.pe[: x.size(0)]", rows))
    backend = attentest.adapted(str(tmp_path / "classifier.py:SentimentClassifier"))
    assert "positional_encoding=interleaved" in "\n".join(backend.understood)


def test_an_input_that_another_parameter_changes_is_said_not_to_be_judged(tmp_path: Path) -> None:
    source = (WILD / "classifier.py").read_text()
    source = source.replace(
        "self.head =", "self.mix = nn.Linear(d_model, d_model)\n        self.head ="
    )
    source = source.replace("x = self.pos_encoder(x)", "x = self.pos_encoder(self.mix(x))")
    (tmp_path / "classifier.py").write_text(source)
    backend = attentest.adapted(str(tmp_path / "classifier.py:SentimentClassifier"))
    (said,) = (one for one in backend.assumed if "are not judged" in one)
    assert "it depends on mix.weight and mix.bias" in said


STACK = """
import math
import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.0):
        super().__init__()
        self.d_model = d_model
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, num_heads, d_ff, dropout, batch_first=True)
            for _ in range(num_layers)
        )

    def forward(self, x, mask=None):
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1], src_key_padding_mask=mask))
        return states[-1]
"""

ENDS = [
    (
        "states = [x]",
        "states = [x * math.sqrt(self.d_model)]",
        r"multiplies its input by 4.472 \(the",
    ),
    ("return states[-1]", "return torch.stack(states[1:]).mean(0)", "times 0.5, 0.5"),
    (
        "return states[-1]",
        "return 0.25 * states[1] + 0.75 * states[2] if len(states) > 2 else x",
        "0.25",
    ),
]
"""An edit of the stack, and what the question says."""


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(("old", "new", "said"), ENDS)
def test_stacks_that_scale_their_input_or_sum_their_layers_are_one_question(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in STACK
    (tmp_path / "stack.py").write_text(STACK.replace(old, new))
    with pytest.raises(Unclear, match=said):
        attentest.adapted(str(tmp_path / "stack.py:Stack"), component="encoder")


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("wrong", ["states[1]", "states[-1] + x"])
def test_stacks_that_return_another_state_are_read_and_do_not_fit(
    wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "stack.py").write_text(STACK.replace("return states[-1]", f"return {wrong}"))
    report = attentest.check(
        str(tmp_path / "stack.py:Stack"), component="encoder", clauses=["encoder.formula"]
    )
    assert not report.conforms


BETWEEN = [
    ("layer(states[-1],", "layer(states[-1] + x * (len(states) > 1),", "plus the input of the"),
    ("layer(states[-1],", "layer(states[-1] * 0.5 ** (len(states) > 1),", "gets 0.5 times the out"),
]
"""An edit of what the later layers of the stack get, and what the question says."""


@share(2)
@pytest.mark.parametrize(("old", "new", "said"), BETWEEN)
def test_stacks_whose_later_layers_get_a_sum_are_one_question(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    assert old in STACK
    (tmp_path / "stack.py").write_text(STACK.replace(old, new))
    with pytest.raises(Unclear, match=said):
        attentest.adapted(str(tmp_path / "stack.py:Stack"), component="encoder")


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize("wrong", ["layer(x,", "states[-1] + layer(states[-1],"])
def test_stacks_that_drop_a_state_or_add_it_twice_are_read_and_do_not_fit(
    wrong: str, tmp_path: Path
) -> None:
    (tmp_path / "stack.py").write_text(STACK.replace("layer(states[-1],", wrong))
    report = attentest.check(
        str(tmp_path / "stack.py:Stack"), component="encoder", clauses=["encoder.formula"]
    )
    assert not report.conforms


AGAIN = [
    ("layer(x, ", "layer(x + start if layer is not self.layers[0] else x, "),
    ("layer(x, ", "layer(x + self.positions.weight[: tokens.shape[1], None], "),
]
"""Edits that add the input of the first layer again, or the positions before each layer."""


@share(2)
@pytest.mark.parametrize(("old", "new"), AGAIN)
def test_encoders_that_add_an_embedding_before_later_layers_are_one_question(
    old: str, new: str, tmp_path: Path
) -> None:
    source = (WILD / "encoder.py").read_text()
    assert old in source
    edited = source.replace("x = x.transpose(0, 1)", "start = x = x.transpose(0, 1)")
    (tmp_path / "encoder.py").write_text(edited.replace(old, new))
    with pytest.raises(Unclear, match=r"layers\.1 gets .* the same numbers for each text"):
        attentest.adapted(str(tmp_path / "encoder.py:Encoder"))


@pytest.mark.proof
def test_an_encoder_that_drops_the_outputs_of_its_layers_is_read_and_does_not_fit(
    tmp_path: Path,
) -> None:
    source = (WILD / "encoder.py").read_text()
    edited = source.replace("x = layer(x, ", "y = layer(x, ").replace(
        "self.norm(x).t", "self.norm(y).t"
    )
    (tmp_path / "encoder.py").write_text(edited)
    target = str(tmp_path / "encoder.py:Encoder")
    assert not attentest.check(target, clauses=["encoder.formula"]).conforms


NEVER = """
from torch import nn


class TextEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, d_ff, n_layers):
        super().__init__()
        self.table = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.Sequential(
            *[
                nn.TransformerEncoderLayer(d_model, heads, d_ff, 0.0, batch_first=True)
                for _ in range(n_layers)
            ]
        )

    def forward(self, x):
        x = self.table(x)
        x = self.blocks(x)
        return x
"""


@pytest.mark.proof
def test_layers_that_no_call_uses_are_asked_about(tmp_path: Path) -> None:
    file = tmp_path / "never.py"
    file.write_text(NEVER)
    assert attentest.adapted(f"{file}:TextEncoder", anyway=True).name
    file.write_text(NEVER.replace("        x = self.blocks(x)\n", ""))
    with pytest.raises(Unclear, match="never calls its layers, blocks"):
        attentest.adapted(f"{file}:TextEncoder")
