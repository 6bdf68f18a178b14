"""Settings that a decoder-only model is made with, as classes without declared fields hold them."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

import attentest
from attentest.targets.adapt.reading import Reading, Unclear
from attentest.targets.language_models.construction.building import PROBE, Building, building

MODEL = """
from torch import nn


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.n_embd)
        self.positions = nn.Embedding(config.block_size, config.n_embd)
        self.blocks = nn.ModuleList(
            [nn.Linear(config.n_embd, config.n_head * 7) for _ in range(config.n_layer)]
        )
        self.act = {"plain": nn.ReLU}[FLAVOUR]()

    def forward(self, ids):
        return self.tokens(ids)
"""
KEPT = """

class GPTConfig:
    flavour = "plain"

    def __init__(self, vocab_size, block_size, **kwargs):
        self.vocab_size = vocab_size
        self.block_size = block_size
        for name, value in kwargs.items():
            setattr(self, name, value)
"""
LOOKED_UP = """

class GPTConfig:
    def __init__(self, **kw):
        self.n_embd = kw.get("n_embd", 768)
        self.n_head = kw.pop("n_head", 12)
        self.n_layer = kw["n_layer"]
        self.vocab_size = kw["vocab_size"]
        self.block_size = kw.get("block_size", 1024)
        self.flavour = "plain"
"""
NAMESPACE = """

from types import SimpleNamespace

USUAL = dict(vocab_size=50257, n_embd=768, n_head=12, n_layer=12, block_size=1024, flavour="plain")


class GPTConfig(SimpleNamespace):
    def __init__(self, **own):
        super().__init__(**{**USUAL, **own})
"""
ATTRIBUTES = """

class GPTConfig:
    vocab_size = 50257
    n_embd = 768
    n_head = 12
    n_layer = 12
    block_size = 1024
    flavour = "plain"
"""


def built(folder: Path, settings: str, flavour: str = "config.flavour") -> Building:
    """Return how the model that is made with `settings` is built."""
    path = folder / "gpt.py"
    path.write_text(MODEL.replace("FLAVOUR", flavour) + settings, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("gpt", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "gpt", module)
        spec.loader.exec_module(module)
        return building(module.GPT, "GPT", Reading())


MARKED = "\n\nfrom dataclasses import dataclass\n" + ATTRIBUTES.replace(
    "class GPTConfig", "@dataclass\nclass GPTConfig"
)
ANNOTATED = "GPT.__init__.__annotations__['config'] = GPTConfig\n"


@pytest.mark.parametrize(
    "settings",
    [KEPT, LOOKED_UP, NAMESPACE, ATTRIBUTES, MARKED, ATTRIBUTES + ANNOTATED, MARKED + ANNOTATED],
)
def test_fields_that_no_argument_declares_are_sizes(settings: str, tmp_path: Path) -> None:
    made = built(tmp_path, settings)
    assert made.known >= {"target_vocabulary", "d_model", "heads", "layers", "max_length"}
    assert tuple(made(PROBE).tokens.weight.shape) == (PROBE.target_vocabulary, PROBE.d_model)


TYPED = """

from typing import TypedDict


class GPTConfig(TypedDict):
    vocab_size: int
    n_embd: int
    n_head: int
    n_layer: int
    block_size: int
"""


def test_typed_dictionary_is_read_by_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "MODEL", re.sub(r"g\.(\w+)", r'g["\1"]', MODEL))
    made = built(tmp_path, TYPED + ANNOTATED, '"plain"')
    assert made.known >= {"target_vocabulary", "d_model", "heads", "layers", "max_length"}


def test_class_that_keeps_its_keywords_makes_the_settings(tmp_path: Path) -> None:
    assert "config=GPTConfig(" in built(tmp_path, KEPT).expression


def test_class_of_one_size_is_not_taken_for_one_that_keeps_its_keywords(tmp_path: Path) -> None:
    small = (
        "\n\nclass GPT1Config(GPTConfig):\n    n_layer = 12\n    n_head = 12\n    n_embd = 768\n"
    )
    made = built(tmp_path, KEPT + small)
    assert "config=GPTConfig(" in made.expression
    assert made(PROBE).tokens.weight.shape[1] == PROBE.d_model


def test_field_in_a_group_that_nothing_says_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(Unclear, match="Nothing says what flavour is"):
        built(tmp_path, "", "config.net.flavour")


def test_groups_of_fields_are_made(tmp_path: Path) -> None:
    groups = MODEL.replace("config.n_", "config.net.n_").replace("config.vo", "config.data.vo")
    path = tmp_path / "own"
    path.mkdir()
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MODEL", groups)
        made = built(path, "", '"plain"')
    assert "net=SimpleNamespace(" in made.expression
    assert "data=SimpleNamespace(" in made.expression


@pytest.mark.parametrize(("default", "layers"), [("0", 1), ("6", 2)])
def test_number_of_layers_that_is_0_by_default_stays_0(
    default: str, layers: int, tmp_path: Path
) -> None:
    taken = "vocab_size, n_embd, n_head, block_size, encoder_layers=6"
    source = MODEL.replace("self, config", f"self, {taken}, decoder_layers={default}")
    source = source.replace("config.n_layer", "encoder_layers + decoder_layers")
    source = source.replace("config.", "").replace("FLAVOUR", '"plain"')
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MODEL", source)
        made = built(tmp_path, "")
    assert made.expression.count("sizes.layers") == layers


def test_required_member_of_an_enumeration_is_the_first_and_an_assumption(tmp_path: Path) -> None:
    kinds = "from enum import Enum\n\nclass Kind(Enum):\n    FIRST = 1\n    SECOND = 2\n"
    taken = "vocab_size, n_embd, n_head, block_size, n_layer, kind: Kind"
    source = MODEL.replace("config", taken, 1).replace("config.", "")
    source = source.replace("FLAVOUR", '"plain" if kind is Kind.FIRST else ""')
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MODEL", kinds + source)
        made = built(tmp_path, "")
    assert "kind=Kind.FIRST" in made.expression
    assert any("kind=Kind.FIRST" in one for one in made.doubts)


DECLARED = """

class GPTConfig:
    def __init__(self, vocab_size=9, n_embd=9, n_head=9, n_layer=9, block_size=9, pad_token_id=1):
        self.vocab_size, self.n_embd, self.n_head = vocab_size, n_embd, n_head
        self.n_layer, self.block_size, self.pad_token_id = n_layer, block_size, pad_token_id
        self.flavour = "plain"
"""


@pytest.mark.parametrize("settings", [ATTRIBUTES + "    pad_token_id = 1\n", DECLARED])
@pytest.mark.parametrize(("pad", "taken"), [(50256, None), (1, 1)])
def test_id_of_padding_that_no_probe_has_is_none(
    settings: str, pad: int, taken: int | None, tmp_path: Path
) -> None:
    rows = "nn.Embedding(config.vocab_size, config.n_embd"
    padded = MODEL.replace(rows, f"{rows}, config.pad_token_id")
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MODEL", padded)
        fields = settings.replace("pad_token_id = 1", f"pad_token_id = {pad}")
        made = built(tmp_path, fields.replace("pad_token_id=1", f"pad_token_id={pad}"))
    assert made(PROBE).tokens.padding_idx == taken


def test_model_that_refuses_fewer_heads_of_keys_has_as_many_as_of_queries(tmp_path: Path) -> None:
    begun = "        super().__init__()\n"
    refusing = begun + "        assert config.n_kv_heads == config.n_head\n"
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "MODEL", MODEL.replace(begun, refusing, 1))
        made = built(tmp_path, DECLARED.replace("pad_token_id", "n_kv_heads"))
    assert "n_kv_heads=sizes.heads" in made.expression
    assert "assumed as many heads of keys as of queries" in "\n".join(made.doubts)


@pytest.mark.proof
def test_class_of_another_file_is_not_taken_for_settings_that_are_read_by_key(
    tmp_path: Path,
) -> None:
    other = "class Config:\n    def __init__(self, vocab_size=9, n_embd=9):\n        pass\n"
    (tmp_path / "other.py").write_text(other, encoding="utf-8")
    source = re.sub(r"config\.(\w+)", r'config["\1"]', MODEL)
    (tmp_path / "own.py").write_text(source.replace("FLAVOUR", '"plain"'), encoding="utf-8")
    with pytest.raises(Unclear) as asked:  # it returns no logits
        attentest.adapted(f"{tmp_path / 'own.py'}:GPT")
    assert "Config" not in str(asked.value)


CHOSEN = """

from dataclasses import dataclass
from typing import Literal


class GatedMLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.inner = nn.Linear(dim, hidden)


@dataclass
class GPTConfig:
    vocab_size: int
    n_embd: int
    n_head: int
    n_layer: int
    block_size: int
    mlp: KIND


GPT.__init__.__annotations__['config'] = GPTConfig
"""


@pytest.mark.parametrize("kind", ['Literal["plain", "gated"]', "str"])
def test_word_that_is_called_as_a_part_is_no_object_of_its_class(kind: str, tmp_path: Path) -> None:
    flavour = 'config.mlp] if config.mlp == "plain" else {"gated": GatedMLP}["gated"'
    made = built(tmp_path, CHOSEN.replace("KIND", kind), flavour)
    assert "mlp='plain'" in made.expression
