"""Settings of decoder-only models of which a field holds settings of another class."""

from pathlib import Path

import pytest
from folders import SUPPORT
from mistaken_code import adapted, broken
from proof import share

NANO = (SUPPORT / "wild_language_models" / "nano.py").read_text()
OTHERS = """from dataclasses import dataclass, field


@dataclass(kw_only=True)
class PlacesConfig:
    kind: str = "learned"


@dataclass(kw_only=True)
class ExpertsConfig:
    count: int = 4


@dataclass(kw_only=True)
class HeadsConfig:
    kind: str = "softmax"


@dataclass(kw_only=True)
class GPTConfig:
    block_size: int
    vocab_size: int
    n_layer: int
    n_head: int
    n_embd: int
    dropout: float = 0.0
    bias: bool = True
    places_config: PlacesConfig = field(default_factory=PlacesConfig)
    experts_config: ExpertsConfig | None = None
    attn_config: dict | HeadsConfig | None = None

    def __post_init__(self):
        if self.attn_config is None:
            self.attn_config = HeadsConfig()
        assert isinstance(self.attn_config, dict | HeadsConfig)
"""
OWN, MODEL = NANO.index("@dataclass\nclass GPTConfig"), NANO.index("class GPT(nn.Module)")
SOURCE = NANO[:OWN].replace("from dataclasses import dataclass", "from own_sizes import GPTConfig")
SOURCE += NANO[MODEL:].replace(
    "def __init__(self, config):", "def __init__(self, config: GPTConfig):"
)
SOURCE = SOURCE.replace(
    "        self.config = config\n",
    "        self.config = config\n"
    '        assert config.places_config.kind == "learned" and config.experts_config is None\n'
    '        assert config.attn_config.kind == "softmax"\n',
)


@share(2, rest=1)
@pytest.mark.parametrize("later", ["", "from __future__ import annotations\n"])
def test_settings_of_another_class_stay_as_they_are(tmp_path: Path, later: str) -> None:
    (tmp_path / "own_sizes.py").write_text(later + OTHERS)
    backend = adapted(tmp_path, "GPT", SOURCE)
    expression = backend.adapter.building.expression
    assert "places_config" not in expression
    assert "attn_config" not in expression
    assert not broken(backend, "language_model.formula")
