"""Whole models whose constructors get the table of positions, as a tensor."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, asked_or_broken, broken, edited

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge

PLAIN = (SUPPORT / "wild_models" / "one_file.py").read_text(encoding="utf-8")
HANDED = edited(
    PLAIN,
    ("import torch\nfrom torch", 'import torch\n\ndevice = torch.device("cpu")\nfrom torch'),
    ("        max_length=100,\n", ""),
    ("        tgt_vocab,\n", "        tgt_vocab,\n        positional_encoding,\n"),
    ("        self.src_pos = nn.Embedding(max_length, hidden_size)\n", ""),
    (
        "self.tgt_pos = nn.Embedding(max_length, hidden_size)",
        "self.positional_encoding = positional_encoding",
    ),
    (", self.src_pos)", ")"),
    (", self.tgt_pos)", ")"),
    ("tokens, positions):", "tokens):"),
    ("        where = torch.arange(ids.size(1), device=ids.device).expand_as(ids)\n", ""),
    ("positions(where)", "self.positional_encoding[:, : ids.size(1), :].to(device)"),
)
SAID = "assumed that positional_encoding is a table of sines and cosines"
KEPT = "assumed that it stays on the device that its file calls device"


@pytest.mark.proof
def test_table_that_a_constructor_takes_is_one_of_sines_and_the_rest_is_judged(
    tmp_path: Path,
) -> None:
    backend = adapted(tmp_path, "TransformerMT", HANDED)
    assumed = backend.assumed  # type: ignore[attr-defined]
    assert any(one.startswith(SAID) for one in assumed)
    assert any(one.startswith(KEPT) for one in assumed)
    assert not broken(backend, "model.formula")
    assert "def sines(" in backend.written()  # type: ignore[attr-defined]


@pytest.mark.proof
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (": ids.size(1), :]", "1 : ids.size(1) + 1, :]"),
        ("math.sqrt(hidden // self.heads)", "math.sqrt(hidden)"),
    ],
)
def test_mistake_beside_such_a_table_is_found(tmp_path: Path, right: str, wrong: str) -> None:
    assert asked_or_broken(tmp_path, "TransformerMT", HANDED, right, wrong, "model.formula")


@pytest.mark.proof
def test_table_without_an_axis_of_samples_is_given_as_that(tmp_path: Path) -> None:
    flat = edited(HANDED, ("[:, : ids.size(1), :]", "[: ids.size(1)]"))
    assert not broken(adapted(tmp_path, "TransformerMT", flat), "model.formula")


@pytest.mark.proof
def test_model_of_one_vocabulary_stays_on_the_device_of_its_file(tmp_path: Path) -> None:
    one = edited(
        HANDED,
        ("        tgt_vocab,\n", ""),
        ("        src_vocab,\n", "        vocab_size,\n"),
        ("nn.Embedding(src_vocab,", "nn.Embedding(vocab_size,"),
        ("nn.Embedding(tgt_vocab,", "nn.Embedding(vocab_size,"),
        ("(hidden_size, tgt_vocab)", "(hidden_size, vocab_size)"),
    )
    (tmp_path / "own.py").write_text(one)
    backend = attentest.adapted(f"{tmp_path / 'own.py'}:TransformerMT")
    assert judge(Bench.for_status(backend, effort=0.1), "model.device-move").status == "absent"
