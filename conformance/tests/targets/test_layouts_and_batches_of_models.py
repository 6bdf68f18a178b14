"""Whole models whose output has other axes than their tokens, or whose inputs come in a batch."""

from pathlib import Path

import pytest
from mistaken_code import adapted, asked_or_broken, broken, edited
from proof import share

from attentest.targets.file_modules import load
from attentest.targets.models.recognition import is_whole

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

MODEL = """
import torch
from torch import nn


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads, layers, d_ff, max_len, pad_id):
        super().__init__()
        self.pad = pad_id
        self.src, self.tgt = nn.Embedding(src_vocab, d_model), nn.Embedding(tgt_vocab, d_model)
        self.places, self.steps = nn.Embedding(max_len, d_model), nn.Embedding(max_len, d_model)
        self.stacks = nn.Transformer(d_model, heads, layers, layers, d_ff, 0.1)
        self.head = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt):
        hidden, n = src == self.pad, tgt.size(1)
        later = torch.ones(n, n, dtype=torch.bool, device=src.device).triu(1)
        x = self.src(src) + self.places(torch.arange(src.size(1), device=src.device))
        y = self.tgt(tgt) + self.steps(torch.arange(n, device=src.device))
        states = self.stacks(
            x.transpose(0, 1), y.transpose(0, 1), tgt_mask=later, src_key_padding_mask=hidden,
            tgt_key_padding_mask=tgt == self.pad, memory_key_padding_mask=hidden,
        )
        return self.head(states)
"""
CLASSES = ("return self.head(states)", "return self.head(states).permute(1, 2, 0)")
TURNED = "the output is meant to be (T, B, V), where the tokens are (B, L)"
BACK = ("return self.head(states)", "return self.head(states).transpose(0, 1)")
KEYS = (
    "src, tgt):\n",
    'batch):\n        src, tgt = batch["encoder_input"], batch["decoder_input"]\n',
)
ATTRIBUTES = ("src, tgt):\n", "batch):\n        src, tgt = batch.src, batch.trg\n")
FORMULA = "model.formula"
SIZES = ("model.formula", "model.padding-in-a-batch")


def _words(backend: object) -> str:
    return "\n".join((*backend.understood, *backend.assumed))  # type: ignore[attr-defined]


@share(2, rest=1)
@pytest.mark.parametrize(
    ("edit", "said", "is_assumed"),
    [((), TURNED, True), ((CLASSES,), "the output is (B, V, T)", False), ((BACK,), "", False)],
)
def test_output_axes_are_measured(
    edit: tuple[tuple[str, str], ...], said: str, is_assumed: bool, tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Translator", edited(MODEL, *edit))
    assert said in _words(backend)
    assert any("meant to be" in one for one in backend.assumed) == is_assumed  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)


@share(2, rest=1)
@pytest.mark.parametrize("edit", [KEYS, ATTRIBUTES])
def test_inputs_of_a_batch_are_read_by_keys_and_by_attributes(
    edit: tuple[str, str], tmp_path: Path
) -> None:
    backend = adapted(tmp_path, "Translator", edited(MODEL, BACK, edit))
    assert not broken(backend, FORMULA)
    written = backend.written()  # type: ignore[attr-defined]
    wanted = "batch={'encoder_input': source" if edit is KEYS else "batch=SimpleNamespace(src=sou"
    assert wanted in written


def test_masks_of_a_batch_are_given_in_it(tmp_path: Path) -> None:
    mask = ("hidden, n = src == self.pad, ", 'hidden, n = batch["src_mask"] == 0, ')
    backend = adapted(tmp_path, "Translator", edited(MODEL, BACK, KEYS, mask))
    assert "'src_mask': " in backend.written()  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)


@pytest.mark.proof
@pytest.mark.parametrize("edits", [(), (CLASSES,), (BACK, KEYS), (BACK, ATTRIBUTES)])
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (".triu(1)", ".triu(2)"),
        ("hidden, n = src == self.pad", "hidden, n = src != self.pad"),
        ("x.transpose(0, 1), y", "x.reshape(x.size(1), x.size(0), -1), y"),
        ("torch.arange(n, device", "torch.arange(1, n + 1, device"),
    ],
)
def test_mistakes_show_in_every_layout(
    right: str, wrong: str, edits: tuple[tuple[str, str], ...], tmp_path: Path
) -> None:
    source = edited(MODEL, *edits)
    assert asked_or_broken(tmp_path, "Translator", source, right, wrong, *SIZES)


def test_labels_of_a_batch_are_no_target(tmp_path: Path) -> None:
    keys = ("src, tgt):\n", 'batch):\n        src, tgt = batch["input_ids"], batch["labels"]\n')
    source = edited(MODEL, BACK, keys, ("class Translator", "class Named"))
    (tmp_path / "own.py").write_text(source)
    module = load(tmp_path / "own.py")
    assert not is_whole("Named", module.Named)


def test_settings_of_a_call_that_hold_a_device_alone_are_given(tmp_path: Path) -> None:
    source = edited(
        MODEL,
        BACK,
        (
            "def forward(self, src, tgt):\n        hidden, n = src == self.pad, tgt.size(1)",
            "def forward(self, en_batch, de_batch, en_mask, de_mask, config):\n"
            "        src, tgt = en_batch.to(config['DEVICE']), de_batch\n"
            "        hidden, n = en_mask == 0, tgt.size(1)",
        ),
        ("tgt_key_padding_mask=tgt == self.pad", "tgt_key_padding_mask=de_mask == 0"),
    )
    backend = adapted(tmp_path, "Translator", source)
    assert "config={'DEVICE': 'cpu'}" in backend.written()  # type: ignore[attr-defined]
    assert not broken(backend, FORMULA)
