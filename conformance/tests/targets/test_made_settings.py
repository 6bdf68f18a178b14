"""Settings that a function of the file makes: their fields are used where they are no sizes."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken

from attentest.targets.adapt import Unclear

SOURCE = """
import argparse
from types import SimpleNamespace

from torch import nn


class FeedForward(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.up = nn.Linear(cfg.d_model, cfg.d_ff)
        self.act = nn.ReLU() if cfg.flavour == "plain" else nn.Tanh()
        self.down = nn.Linear(cfg.d_ff, cfg.d_model)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


def default_config():
    return SimpleNamespace(d_model=8, d_ff=32, flavour="plain")
"""
NAMESPACE = 'return SimpleNamespace(d_model=8, d_ff=32, flavour="plain")'
PARSER = """parser = argparse.ArgumentParser()
    parser.add_argument("--d_model", type=int, default=8)
    parser.add_argument("--d-ff", type=int, default=32)
    parser.add_argument("--flavour", default="plain")
    return parser.parse_args()"""


@pytest.mark.parametrize("body", [NAMESPACE, PARSER])
def test_fields_that_are_no_sizes_are_those_of_a_function(body: str, tmp_path: Path) -> None:
    backend = adapted(tmp_path, "FeedForward", SOURCE.replace(NAMESPACE, body))
    assert any("default_config() makes" in one for one in backend.assumed)
    assert backend.fits


@pytest.mark.parametrize("name", ["main", "train"])
def test_function_that_is_not_named_after_settings_is_not_called(name: str, tmp_path: Path) -> None:
    source = SOURCE.replace("def default_config", f"def {name}").replace(
        NAMESPACE, f"open({str(tmp_path / 'called')!r}, 'w').close()\n    {NAMESPACE}"
    )
    with pytest.raises(Unclear, match="nothing says what flavour is"):
        adapted(tmp_path, "FeedForward", source)
    assert not (tmp_path / "called").exists()


def test_class_of_settings_is_meant_where_there_is_one(tmp_path: Path) -> None:
    made = "class FeedForwardConfig:\n    def __init__(self, d_model=8, d_ff=32):\n"
    made += "        self.d_model, self.d_ff, self.flavour = d_model, d_ff, 'tanh'\n"
    backend = adapted(tmp_path, "FeedForward", f"{SOURCE}\n\n{made}", anyway=True)
    assert not any("default_config() makes" in one for one in backend.assumed)


TABLES = """
import torch
from torch import nn


class Cfg(dict):
    __getattr__ = dict.__getitem__


class SelfAttention(nn.Module):
    def __init__(self, cfg, layer_idx=0):
        super().__init__()
        self.cfg = cfg
        self.qkv = nn.Linear(cfg["width"], 3 * cfg["width"])
        self.out = nn.Linear(cfg["width"], cfg["width"])

    def forward(self, x):
        b, t, d = x.shape
        heads = self.qkv(x).view(b, t, 3, self.cfg["n_heads"], d // self.cfg["n_heads"])
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (d // self.cfg["n_heads"]) ** -0.5 * self.cfg["gain"]
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


CONFIG = dict(width=8, n_heads=2, gain=1.0)
"""
HELD = "CONFIG = dict(width=8, n_heads=2, gain=1.0)"
BY_NAME = [('cfg["width"]', "cfg.width"), ('cfg["n_heads"]', "cfg.n_heads")]


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [(HELD, f"def default_cfg(**more):\n    return {HELD[9:]}")],
        [
            *BY_NAME,
            ('cfg["gain"]', "cfg.gain"),
            (HELD, f"def default_cfg():\n    return Cfg({HELD[14:]}"),
        ],
    ],
    ids=["constant", "function", "class"],
)
def test_fields_of_tables_are_given_where_a_call_reads_them(
    edits: list[tuple[str, str]], tmp_path: Path
) -> None:
    source = TABLES
    for old, new in edits:
        source = source.replace(old, new)
    (tmp_path / "others.py").write_text("class OtherConfig:\n    gain = width = n_heads = 3\n")
    backend = adapted(tmp_path, "SelfAttention", source)
    assert any(" holds, where" in one or "() makes, where" in one for one in backend.assumed)
    assert backend.fits


def test_table_without_a_field_that_is_read_is_not_given(tmp_path: Path) -> None:
    with pytest.raises(Unclear):
        adapted(tmp_path, "SelfAttention", TABLES.replace("width=8, ", ""))


def several(gains: str) -> str:
    """Return the file with a table of settings for each of the `gains`, which differ in sizes."""
    made = (
        f"CONFIG_{number} = dict(width={8 * number}, n_heads=2, gain={gain}, dtype=torch.float16)"
        for number, gain in enumerate(gains.split(), 1)
    )
    return TABLES.replace(HELD, "\n".join(made))


def test_several_tables_give_what_they_hold_alike(tmp_path: Path) -> None:
    backend = adapted(tmp_path, "SelfAttention", several("1.0 1.0 1.0"))
    assert any("each of CONFIG_1, CONFIG_2, .. holds, where" in one for one in backend.assumed)
    assert backend.fits


def test_a_mistake_that_several_tables_make_alike_is_detected(tmp_path: Path) -> None:
    try:
        backend = adapted(tmp_path, "SelfAttention", several("3.0 3.0"))
    except Unclear:
        return
    assert broken(backend, "multi_head_attention.formula")


def test_fields_that_several_tables_hold_differently_are_not_given(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="gain"):
        adapted(tmp_path, "SelfAttention", several("1.0 0.5"))


@pytest.mark.proof
def test_settings_of_the_file_come_before_classes_of_other_files(tmp_path: Path) -> None:
    source = (SUPPORT / "wild_language_models" / "nano.py").read_text(encoding="utf-8")
    head, _, rest = source.partition("@dataclass")
    body = rest.partition("\n\n\n")[2].replace("config: GPTConfig", "config")
    made = "\n\n\ndef default_config():\n    return SimpleNamespace("
    made += "block_size=64, vocab_size=32, n_layer=2, n_head=2, n_embd=8, dropout=0.0, bias=True)\n"
    other = f"from dataclasses import dataclass\n\n\n@dataclass{rest.partition(chr(10) * 3)[0]}\n"
    (tmp_path / "other.py").write_text(other)
    code = f"from types import SimpleNamespace\n{head}{body}{made}"
    backend = adapted(tmp_path, "GPT", code)
    assert "GPTConfig" not in "\n".join(backend.assumed)


FIXED = """class Config:
    seed = 7

    def __init__(self):
        self.d_model, self.d_ff = 8, 32
        self.flavour = "plain"
"""


@pytest.mark.parametrize("near", [True, False], ids=["own file", "other file"])
def test_fields_that_are_no_sizes_are_those_of_a_class_without_arguments(
    near: bool, tmp_path: Path
) -> None:
    source = SOURCE.partition("def default_config")[0].replace("cfg", "config")
    (tmp_path / "settings.py").write_text(FIXED)
    backend = adapted(tmp_path, "FeedForward", f"{source}{FIXED}" if near else source)
    assert any("Config() makes" in one for one in backend.assumed)
    assert backend.fits
    assert not broken(backend, "feed_forward.formula")


def test_class_without_arguments_excuses_no_mistake(tmp_path: Path) -> None:
    source = SOURCE.partition("def default_config")[0].replace("cfg", "config")
    wrong = source.replace("self.down(self.act(self.up(x)))", "self.act(self.down(self.up(x)))")
    assert wrong != source
    assert broken(adapted(tmp_path, "FeedForward", f"{wrong}{FIXED}"), "feed_forward.formula")
