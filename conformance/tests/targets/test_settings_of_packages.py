"""Settings and parts whose classes are in other files of a folder or of an installed package."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from proof import share
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.members import adapter_text

SETTINGS = """
    from dataclasses import dataclass

    @dataclass
    class BlockConfig:
        dim: int = 64
        hidden_size: int = 96  # the inner width, beside `dim`
        n_head: int = 4
        layers_shown: int = 2
        keep_probability: float = 1.0
        residual: bool = True
        style: str = "post"

        def __post_init__(self):
            if self.dim % self.n_head:
                raise ValueError("the heads have to divide the width")
            self.scale = (self.dim // self.n_head) ** -0.5

        @property
        def columns(self):
            return self.dim // self.n_head
"""
PARTS = """
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, config):
            super().__init__()
            if config.style not in ("post", "pre") or config.keep_probability < 1:
                raise ValueError("not written")
            self.columns, self.scale = config.columns, config.scale
            self.q, self.k, self.v, self.o = (nn.Linear(config.dim, config.dim) for _ in range(4))

        def forward(self, x, mask=None):
            q, k, v = (
                way(x).unflatten(-1, (-1, self.columns)).transpose(1, 2)
                for way in (self.q, self.k, self.v)
            )
            scores = q @ k.mT * self.scale
            if mask is not None:
                scores = scores.masked_fill(mask == 0, -1e9)
            return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    class FeedForward(nn.Module):
        def __init__(self, config):
            super().__init__()
            if config.style not in ("post", "pre") or config.layers_shown > 2:
                raise ValueError("not written")
            self.up = nn.Linear(config.dim, config.hidden_size)
            self.down = nn.Linear(config.hidden_size, config.dim)

        def forward(self, x):
            return self.down(self.up(x).relu())
"""
OTHER = """
    class StreamConfig:
        def __init__(self, **kwargs):
            self.dim = kwargs.pop("dim", 64)
            self.hidden_size = kwargs.pop("hidden_size", 96)
            self.layers_shown = kwargs.pop("layers_shown", 2)
            self.style = kwargs.pop("style", "pre")
"""
FEW = "class SmallConfig:\n    def __init__(self, dim=8):\n        self.dim = dim\n"
NETWORK, ATTENTION = "feed_forward.formula", "multi_head_attention.formula"


def checked(folder: Path, target: str, clause: str, **said: Any) -> Any:
    return attentest.check(str(folder / target), clauses=[clause], **said)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(("name", "clause"), [("FeedForward", NETWORK), ("Attention", ATTENTION)])
def test_settings_are_those_that_have_the_fields(tmp_path, name, clause):
    """Values that settings compute from their sizes follow the sizes: the scale, the columns."""
    folder = write_files(tmp_path, config=SETTINGS, parts=PARTS, small=FEW)
    report = checked(folder, f"parts.py:{name}", clause)
    assert report.conforms, str(report)
    assert report.compared == 1
    assert "assumed that config is a BlockConfig of config.py" in "\n".join(report.inferred)


@pytest.mark.proof
@share(2)
@pytest.mark.parametrize(
    ("name", "clause", "old", "new"),
    [
        ("FeedForward", NETWORK, "self.down(self.up(x).relu())", "self.down(self.up(x)).relu()"),
        ("Attention", ATTENTION, "* self.scale", "* self.scale**2"),
    ],
)
def test_mistakes_in_what_settings_build_are_detected(tmp_path, name, clause, old, new):
    assert old in PARTS
    folder = write_files(tmp_path, config=SETTINGS, parts=PARTS.replace(old, new))
    assert not checked(folder, f"parts.py:{name}", clause).conforms


@pytest.mark.proof
def test_several_settings_are_a_question_that_names_them(tmp_path):
    folder = write_files(tmp_path, config=SETTINGS, stream=OTHER, parts=PARTS)
    with pytest.raises(Unclear, match=r"what it reads: BlockConfig, StreamConfig\. Say which"):
        checked(folder, "parts.py:FeedForward", NETWORK)
    for name in ("BlockConfig", "StreamConfig"):
        said = checked(folder, "parts.py:FeedForward", NETWORK, given={"config": name})
        assert said.conforms, str(said)
    alone = checked(folder, "parts.py:Attention", ATTENTION)  # the others have no scale
    assert alone.conforms, str(alone)


@pytest.mark.proof
def test_settings_called_as_the_class_are_its_own(tmp_path):
    parts = PARTS.replace("class FeedForward", "class StreamFeedForward")
    folder = write_files(tmp_path, config=SETTINGS, stream=OTHER, parts=parts)
    report = checked(folder, "parts.py:StreamFeedForward", NETWORK)
    assert report.conforms, str(report)
    assert "a StreamConfig of stream.py" in "\n".join(report.inferred)


def test_settings_that_lack_a_field_are_none(tmp_path):
    folder = write_files(tmp_path, parts=PARTS, small=FEW)
    with pytest.raises(Unclear, match="nothing says what style is"):
        checked(folder, "parts.py:FeedForward", NETWORK)


def test_settings_of_a_file_that_does_more_than_define_are_not_run(tmp_path):
    trains = f"{SETTINGS}\n    raise SystemExit('this file trains')\n"
    folder = write_files(tmp_path, config=trains, parts=PARTS)
    with pytest.raises(Unclear, match="nothing says what style is"):
        checked(folder, "parts.py:FeedForward", NETWORK)


def test_two_classes_of_one_name_in_two_files_are_several(tmp_path):
    layer = """
        from torch import nn

        class EncoderLayer(nn.Module):
            def __init__(self, dim, attention, feed_forward):
                super().__init__()
                self.attention, self.feed_forward = attention, feed_forward

            def forward(self, x, mask):
                x = x + self.attention(x, mask)
                return x + self.feed_forward(x)
    """
    one = "from torch import nn\nclass FeedForward(nn.Linear):\n    pass\n"
    other = "from torch import nn\nclass FeedForward(nn.Identity):\n    pass\n"
    folder = write_files(tmp_path, layer=layer, one=one, other=other)
    with pytest.raises(Unclear, match="nothing says what attention and feed_forward are"):
        checked(folder, "layer.py:EncoderLayer", "encoder.layer-formula")


@pytest.mark.proof
def test_several_parts_are_named_and_one_can_be_said(tmp_path):
    layer = """
        from torch import nn

        class EncoderLayer(nn.Module):
            def __init__(self, dim, heads, hidden, feed_forward):
                super().__init__()
                self.attention = nn.MultiheadAttention(dim, heads, batch_first=True)
                self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
                self.feed_forward = feed_forward

            def forward(self, x):
                x = self.first(x + self.attention(x, x, x)[0])
                return self.second(x + self.feed_forward(x))
    """
    network = """
        from torch import nn

        class {}(nn.Sequential):
            def __init__(self, dim, hidden):
                super().__init__(nn.Linear(dim, hidden), nn.{}(), nn.Linear(hidden, dim))
    """
    folder = write_files(
        tmp_path,
        layer=layer,
        one=network.format("FeedForward", "ReLU"),
        other=network.format("MLP", "GELU"),
    )
    target, clause = "layer.py:EncoderLayer", "encoder.layer-formula"
    with pytest.raises(Unclear, match="may make feed_forward: FeedForward, MLP; --give"):
        checked(folder, target, clause)
    report = checked(folder, target, clause, given={"feed_forward": "FeedForward"})
    assert report.conforms, str(report)


@pytest.mark.proof
@pytest.mark.parametrize("argument", ["attention", "attn: Attending", "mixer: Attending"])
def test_the_part_of_a_layer_is_that_of_its_annotation_or_attends_with_heads(tmp_path, argument):
    """A class of attention without projections is near, and is no part of a layer."""
    layer = f"""
        from torch import nn
        from .parts import Attending

        class EncoderLayer(nn.Module):
            def __init__(self, dim, {argument}, hidden):
                super().__init__()
                self.attention = {argument.partition(":")[0]}
                self.first, self.second = nn.LayerNorm(dim), nn.LayerNorm(dim)
                self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

            def forward(self, x):
                x = self.first(x + self.attention(x))
                return self.second(x + self.down(self.up(x).relu()))
    """
    parts = """
        from torch import nn

        class Attending(nn.Module):
            def __init__(self, dim, heads):
                super().__init__()
                self.inner = nn.MultiheadAttention(dim, heads, batch_first=True)

            def forward(self, x):
                return self.inner(x, x, x)[0]

        class DotProductAttention(nn.Module):
            def __init__(self, scale):
                super().__init__()

            def forward(self, q, k, v):
                return (q @ k.mT * self.scale).softmax(-1) @ v
    """
    name = "MultiHeadAttention" if ":" not in argument else "Attending"
    text = parts.replace("class Attending", f"class {name}")
    layer = layer.replace("Attending", name)
    folder = write_files(tmp_path, pack__init="", pack__layer=layer, pack__parts=text)
    report = checked(folder, "pack/layer.py:EncoderLayer", "encoder.layer-formula")
    assert report.conforms, str(report)
    assert report.compared == 1


PACKAGE_RUN = """
import attentest
report = attentest.check("parted.parts:FeedForward", clauses=["feed_forward.formula"])
assert report.conforms and report.compared == 1, str(report)
assert "a BlockConfig of config.py" in "\\n".join(report.inferred)
"""


@pytest.mark.proof
def test_settings_of_a_package_are_found_by_the_name_of_its_module(tmp_path):
    write_files(tmp_path, parted__init="", parted__parts=PARTS, parted__settings__config=SETTINGS)
    done = subprocess.run(
        [sys.executable, "-c", PACKAGE_RUN], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


MODEL = """
    from torch import nn

    class GPT(nn.Module):
        def __init__(self, config):
            super().__init__()
            if config.style not in ("post", "pre"):
                raise ValueError("not written")
            self.table = nn.Embedding(config.vocab_size, config.dim)
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(
                    config.dim, config.n_head, config.hidden_size, config.dropout,
                    activation="gelu", batch_first=True, norm_first=True,
                )
                for _ in range(config.n_layer)
            )
            self.norm = nn.LayerNorm(config.dim)
            self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

        def forward(self, ids):
            mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            x = self.table(ids)
            for layer in self.layers:
                x = layer(x, mask, is_causal=True)
            return self.head(self.norm(x))
"""


@pytest.mark.proof
def test_a_written_adapter_imports_the_settings(tmp_path):
    settings = SETTINGS.replace("residual: bool", "vocab_size: int = 9\n        residual: bool")
    settings = settings.replace("layers_shown", "n_layer").replace("keep_probability", "dropout")
    folder = write_files(tmp_path, config=settings, model=MODEL)
    target = str(folder / "model.py:GPT")
    assert "a BlockConfig of config.py" in "\n".join(attentest.adapted(target).understood)
    (tmp_path / "adapter.py").write_text(adapter_text(target, {}))
    clause = "language_model.formula"
    report = attentest.check(str(tmp_path / "adapter.py"), clauses=[clause])
    assert report.conforms, str(report)
    assert report.compared == 1
