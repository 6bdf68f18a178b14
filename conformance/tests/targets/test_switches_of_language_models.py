"""Settings of decoder-only models that are no sizes: switches, words and settings of settings."""

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import cast

import pytest
from torch import nn

from attentest.targets.adapt import Unclear
from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.construction.building import PROBE, Building, building
from attentest.targets.language_models.probing import probe_of

MODEL = """
from dataclasses import dataclass

from torch import nn


@dataclass
class GPTConfig:
    vocab_size: int
    n_embd: int
    n_head: int
    n_layer: int
    tie_weights: bool
    use_flash: bool
    activation: str
    causal: bool = False


class GPT(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        width = config.n_embd
        assert config.activation in ("silu", "gelu") and config.causal and not config.use_flash
        self.tokens = nn.Embedding(config.vocab_size, width)
        self.blocks = nn.ModuleList(
            [nn.Linear(width, config.n_head * 7) for _ in range(config.n_layer)]
        )

    def forward(self, ids):
        return self.tokens(ids)
"""
BARE = MODEL.replace("config: GPTConfig", "config").replace("class GPTConfig", "class Other")
BARE = BARE.replace("config.activation in", "0 in (config.attention_bias and 1, 0) or 0 in")
OF_A_DICTIONARY = """
from dataclasses import dataclass
from typing import Optional

from torch import nn


@dataclass
class GPTConfig:
    vocab_size: int = 50257
    n_embd: int = 768
    n_head: int = 12
    n_layer: int = 12

    def __init__(self, config: Optional[dict[str, int]] = None) -> None:
        if config:
            self.vocab_size = config.get("vocab_size", self.vocab_size)
            self.n_embd = config.get("n_embd", self.n_embd)
            self.n_head = config.get("n_head", self.n_head)
            self.n_layer = config.get("n_layer", self.n_layer)


class GPT(nn.Module):
    def __init__(self, config: dict[str, dict[str, int]] | GPTConfig = GPTConfig()) -> None:
        super().__init__()
        self.config = config if isinstance(config, GPTConfig) else GPTConfig(config["model"])
        width = self.config.n_embd
        self.tokens = nn.Embedding(self.config.vocab_size, width)
        self.blocks = nn.ModuleList(
            [nn.Linear(width, self.config.n_head * 7) for _ in range(self.config.n_layer)]
        )

    def forward(self, ids):
        return self.tokens(ids)
"""


def _read(folder: Path, source: str, **given: object) -> Building:
    """Return how the model of a file with `source` is built."""
    file = folder / "own_switches.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(f"own_switches_{abs(hash(source))}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    assert inspect.isclass(module.GPT)
    return building(module.GPT, "GPT", Reading(given=given))


def test_required_switches_and_words_are_assumed(tmp_path: Path) -> None:
    found = _read(tmp_path, MODEL)
    assert "tie_weights=True" in found.expression
    assert "use_flash=False" in found.expression
    assert "activation='silu'" in found.expression
    said = " ".join(found.doubts)
    assert "assumed use_flash=False" in said
    assert "assumed activation='silu'" in said


@pytest.mark.parametrize("own", ["use_residuals", "use_pos_emb", "skip_connections"])
def test_required_switch_of_what_every_design_has_is_on(own: str, tmp_path: Path) -> None:
    found = _read(tmp_path, MODEL.replace("use_flash: bool", f"use_flash: bool\n    {own}: bool"))
    assert f"{own}=True" in found.expression
    assert f"assumed {own}=True" in " ".join(found.doubts)


def test_later_tokens_are_hidden_where_a_switch_says_it(tmp_path: Path) -> None:
    found = _read(tmp_path, MODEL)
    assert "causal=True" in found.expression
    assert "assumed causal=True" in " ".join(found.doubts)


def test_required_number_that_nothing_says_is_asked_about(tmp_path: Path) -> None:
    source = MODEL.replace("use_flash: bool", "amount: float")
    source = source.replace("not config.use_flash", "config.amount == 0.5")
    with pytest.raises(Unclear, match="Nothing says what amount is"):
        _read(tmp_path, source)
    assert "amount=0.5" in _read(tmp_path, source, amount=0.5).expression


def test_required_field_beside_all_sizes_is_none_where_nothing_reads_it(tmp_path: Path) -> None:
    sizes = "    n_layer: int\n    d_ff: int\n    max_len: int\n    eos_token: int\n"
    source = MODEL.replace("    n_layer: int\n", sizes)
    source = source.replace("width = config.n_embd", "width = config.n_embd + 0 * config.d_ff")
    source = source.replace("config.n_head * 7)", "config.d_ff + config.n_head * 7 - config.d_ff)")
    wide = "self.wide = nn.ModuleList([nn.Linear(width, config.d_ff) for _ in range(2)])\n"
    source = source.replace("        self.tokens", f"        {wide}        self.tokens")
    found = _read(tmp_path, source)
    assert "eos_token=None" in found.expression
    assert "assumed eos_token=None" in " ".join(found.doubts)
    with pytest.raises(Unclear, match="Nothing says what eos_token is"):
        _read(tmp_path, source.replace("width = config.n_embd", "width = config.eos_token * 7"))


def test_width_that_networks_take_two_thirds_of_is_four_times_the_models(tmp_path: Path) -> None:
    source = MODEL.replace("    n_layer: int\n", "    n_layer: int\n    hidden_dim: int\n")
    rows = "int(2 * config.hidden_dim / 3)"
    wide = f"self.wide = nn.ModuleList([nn.Linear(width, {rows}) for _ in range(2)])\n"
    found = _read(
        tmp_path, source.replace("        self.tokens", f"        {wide}        self.tokens")
    )
    assert "hidden_dim=4 * sizes.d_model" in found.expression
    assert "assumed hidden_dim=4 times the width" in " ".join(found.doubts)
    plain = wide.replace(rows, "config.hidden_dim")
    found = _read(
        tmp_path, source.replace("        self.tokens", f"        {plain}        self.tokens")
    )
    assert "hidden_dim=sizes.d_ff" in found.expression


def test_parameters_that_begin_without_numbers_get_some() -> None:
    def made(_: object) -> nn.Module:
        norm = nn.LayerNorm(5)
        norm.weight.data.fill_(float("nan"))
        norm.bias.data.fill_(1e30)
        return norm

    found = probe_of(cast("Building", made), PROBE)
    assert all(one.abs().max() < 3 for one in found.parameters())


def test_switch_of_settings_without_a_class_is_off(tmp_path: Path) -> None:
    source = BARE.replace("not config.use_flash", "not config.use_fast")
    found = _read(tmp_path, source)
    assert "attention_bias=False" in found.expression
    assert "assumed attention_bias=False" in " ".join(found.doubts)


def test_switch_that_is_stored_alone_is_off_by_its_name(tmp_path: Path) -> None:
    source = BARE.replace(" and not config.use_flash", "\n        self.fast = config.use_flash")
    assert "use_flash=False" in _read(tmp_path, source).expression
    with pytest.raises(Unclear, match="Nothing says what speed is"):
        _read(tmp_path, source.replace("config.use_flash", "config.speed"))


def test_settings_that_are_made_of_a_dictionary_are_read(tmp_path: Path) -> None:
    found = _read(tmp_path, OF_A_DICTIONARY)
    assert "n_embd=sizes.d_model" in found.expression
    assert found.expression.startswith("GPT(config=GPTConfig(config=dict(")
