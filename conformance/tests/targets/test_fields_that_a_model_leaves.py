"""Fields of settings that several models share: those that a model leaves, or has no use for."""

import importlib.util
import inspect
import sys
from pathlib import Path

import pytest

from attentest.targets.adapt.reading import Reading
from attentest.targets.language_models.argument_names import tokens_named
from attentest.targets.language_models.construction.building import Building, building

MODEL = """
from dataclasses import dataclass

from torch import nn


class GPT(nn.Module):
    def __init__(self, model_args):
        super().__init__()
        width = model_args.n_embd
        self.tokens = nn.Embedding(model_args.vocab_size, width)
        self.blocks = nn.ModuleList(
            [nn.Linear(width, model_args.n_head * 7) for _ in range(model_args.n_layer)]
        )

    def forward(self, ids):
        return self.tokens(ids)


@dataclass
class ModelArgs:
    vocab_size: int = 50257
    n_embd: int = 768
    n_head: int = 12
    n_layer: int = 12
    n_kv_head: int | None = None
"""
PLAIN = """
from torch import nn


class GPT(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_kv_head=None):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, n_embd)
        self.blocks = nn.ModuleList([nn.Linear(n_embd, n_head * 7) for _ in range(n_layer)])

    def forward(self, ids):
        return self.tokens(ids)
"""
BY_KEY = """
from torch import nn


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        width, inner = cfg["emb_dim"], cfg["n_heads"] * 7
        if "num_experts" in cfg and cfg["num_experts"] > 0:
            inner = cfg["num_experts"] * cfg["moe_size"]
        self.tokens = nn.Embedding(cfg["vocab_size"], width)
        self.blocks = nn.ModuleList([nn.Linear(width, inner) for _ in range(cfg["n_layers"])])

    def forward(self, ids):
        return self.tokens(ids)
"""


def built(folder: Path, source: str) -> Building:
    """Return how the model in `source` is built."""
    path = folder / "shared_gpt.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("shared_gpt", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "shared_gpt", module)
        spec.loader.exec_module(module)
        return building(module.GPT, "GPT", Reading())


@pytest.mark.parametrize("own", ["model_args", "gpt_hparams", "net_settings"])
def test_settings_are_known_by_the_end_of_their_name(own: str, tmp_path: Path) -> None:
    made = built(tmp_path, MODEL.replace("model_args", own))
    assert f"{own}=ModelArgs(" in made.expression


def test_field_that_changes_no_shape_keeps_its_default(tmp_path: Path) -> None:
    made = built(tmp_path, MODEL)
    assert "n_kv_head" not in made.expression
    assert any("n_kv_head changes no shape" in one for one in made.doubts)


@pytest.mark.parametrize("default", ["None", "1", "2"])
def test_field_that_changes_shapes_is_a_size(default: str, tmp_path: Path) -> None:
    read = MODEL.replace("model_args.n_head * 7", "model_args.n_kv_head * 7 + model_args.n_head")
    read = read.replace("int | None = None", f"int | None = {default}")
    assert "n_kv_head=sizes.kv_heads" in built(tmp_path, read).expression


def test_argument_of_the_model_that_changes_no_shape_is_given(tmp_path: Path) -> None:
    assert "n_kv_head=sizes.kv_heads" in built(tmp_path, PLAIN).expression


def test_experts_that_may_be_left_out_are_left_out(tmp_path: Path) -> None:
    made = built(tmp_path, BY_KEY)
    assert "num_experts" not in made.expression
    assert any("cfg has no num_experts" in one for one in made.doubts)


@pytest.mark.parametrize(("default", "given"), [("1", False), ("None", False), ("8", True)])
def test_number_of_experts_of_a_dense_model_keeps_its_default(
    default: str, *, given: bool, tmp_path: Path
) -> None:
    last = "n_kv_head: int | None = None"
    field = f"{last}\n    num_experts: int | None = {default}"
    made = built(tmp_path, MODEL.replace(last, field))
    assert ("num_experts=sizes.experts" in made.expression) == given


def test_experts_that_are_required_are_given(tmp_path: Path) -> None:
    always = BY_KEY.replace('"num_experts" in cfg and ', "").replace(' * cfg["moe_size"]', " * 3")
    assert "num_experts=sizes.experts" in built(tmp_path, always).expression


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        ("tgt, tgt_mask=None, src=None, src_mask=None", "tgt"),
        ("mask, input_ids=None", "input_ids"),
        ("hidden, tokens", "tokens"),
        ("input_ids=None, position_ids=None", "input_ids"),
    ],
)
def test_tokens_are_the_argument_that_must_be_given(signature: str, expected: str) -> None:
    space: dict[str, object] = {}
    exec(f"def forward({signature}): pass", space)
    forward = space["forward"]
    assert callable(forward)
    assert tokens_named(inspect.signature(forward).parameters) == expected
