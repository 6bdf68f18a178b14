"""Layers and stacks that are built with their parts, whose classes are in other files."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import broken
from proof import share
from user_files import write_files

import attentest
from attentest.targets.adapt import Unclear

ATTENTION = """
    import torch
    from torch import nn

    class MultiHeadedAttention(nn.Module):
        def __init__(self, h, d_model, dropout=0.1):
            super().__init__()
            self.h = h
            self.ways = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
            self.drop = nn.Dropout(dropout)

        def forward(self, query, key, value, mask=None):
            heads = [
                way(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
                for way, x in zip(self.ways, (query, key, value))
            ]
            scores = heads[0] @ heads[1].mT / heads[0].shape[-1] ** 0.5
            if mask is not None:
                scores = scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)
            mixed = self.drop(scores.softmax(-1)) @ heads[2]
            return self.ways[3](mixed.transpose(1, 2).flatten(2))
"""
NETWORK = """
    from torch import nn

    class PositionwiseFeedForward(nn.Module):
        def __init__(self, d_model, inner_dimensionality, dropout=0.1):
            super().__init__()
            self.up = nn.Linear(d_model, inner_dimensionality)
            self.down = nn.Linear(inner_dimensionality, d_model)
            self.drop = nn.Dropout(dropout)

        def forward(self, x):
            return self.down(self.drop(self.up(x).relu()))
"""
LAYERS = """
    import copy
    from torch import nn

    class Sub(nn.Module):
        def __init__(self, size, dropout):
            super().__init__()
            self.norm = nn.LayerNorm(size)
            self.drop = nn.Dropout(dropout)

        def forward(self, x, within):
            return x + self.drop(within(self.norm(x)))

    class EncoderLayer(nn.Module):
        def __init__(self, size, self_attn, feed_forward, dropout):
            super().__init__()
            self.size = size
            self.self_attn, self.feed_forward = self_attn, feed_forward
            self.subs = nn.ModuleList(Sub(size, dropout) for _ in range(2))

        def forward(self, x, mask):
            x = self.subs[0](x, lambda x: self.self_attn(x, x, x, mask))
            return self.subs[1](x, self.feed_forward)

    class DecoderLayer(nn.Module):
        def __init__(self, size, self_attn, src_attn, feed_forward, dropout):
            super().__init__()
            self.size = size
            self.self_attn, self.src_attn, self.feed_forward = self_attn, src_attn, feed_forward
            self.subs = nn.ModuleList(Sub(size, dropout) for _ in range(3))

        def forward(self, x, memory, src_mask, tgt_mask):
            x = self.subs[0](x, lambda x: self.self_attn(x, x, x, tgt_mask))
            x = self.subs[1](x, lambda x: self.src_attn(x, memory, memory, src_mask))
            return self.subs[2](x, self.feed_forward)
"""
STACKS = """
    import copy
    from torch import nn
    from pieces.layers import EncoderLayer

    class Encoder(nn.Module):
        def __init__(self, encoder_layer, num_layers):
            super().__init__()
            self.layers = nn.ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
            self.norm = nn.LayerNorm(encoder_layer.size)

        def forward(self, x, mask):
            for layer in self.layers:
                x = layer(x, mask)
            return self.norm(x)
"""
TRAINS = "raise SystemExit('this file trains')\nclass MultiHeadAttention: pass"


def written(folder: Path, **others: str) -> Path:
    files = {
        "pieces__attention": ATTENTION,
        "pieces__network": NETWORK,
        "pieces__layers": LAYERS,
        "stacks__encoder": STACKS,
        "train": TRAINS,
    }
    return write_files(folder, **{**files, **others})


def checked(folder: Path, target: str, component: str) -> Any:
    stack, _, layer = component.partition("_")
    clause = f"{stack}.layer-formula" if layer == "layer" else f"{component}.formula"
    return attentest.check(str(folder / target), clauses=[clause])


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("target", "component"),
    [
        ("pieces/layers.py:EncoderLayer", "encoder_layer"),
        ("pieces/layers.py:DecoderLayer", "decoder_layer"),
        ("stacks/encoder.py:Encoder", "encoder"),
    ],
)
def test_parts_of_other_files_are_put_in_and_said(tmp_path, target, component):
    report = checked(written(tmp_path), target, component)
    assert report.conforms, str(report)
    assert report.compared == 1
    said = "\n".join(report.inferred)
    assert "assumed that self_attn is a MultiHeadedAttention of attention.py" in said


@pytest.mark.proof
@share(3)
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        (
            "pieces__attention",
            "heads[0] @ heads[1].mT / heads[0].shape[-1] ** 0.5",
            "heads[0] @ heads[1].mT",
        ),
        ("pieces__layers", "return x + self.drop", "return self.drop"),
        ("stacks__encoder", "x = layer(x, mask)", "x = layer(x, None)"),
    ],
)
def test_mistakes_in_parts_and_in_what_holds_them_are_detected(tmp_path, file, old, new):
    texts = {"pieces__attention": ATTENTION, "pieces__layers": LAYERS, "stacks__encoder": STACKS}
    assert old in texts[file]
    folder = written(tmp_path, **{file: texts[file].replace(old, new)})
    try:
        report = checked(folder, "stacks/encoder.py:Encoder", "encoder")
    except Unclear:
        return
    assert not report.conforms, str(report)


@pytest.mark.proof
def test_copies_of_one_class_are_one_part(tmp_path):
    folder = written(tmp_path, pieces__whole=f"{ATTENTION}\n{NETWORK}")
    assert checked(folder, "pieces/layers.py:EncoderLayer", "encoder_layer").conforms


@pytest.mark.proof
def test_a_part_that_is_nowhere_is_no_size(tmp_path):
    folder = written(tmp_path, pieces__network="class Other: pass")
    with pytest.raises(Unclear, match="nothing says what feed_forward is"):
        checked(folder, "pieces/layers.py:EncoderLayer", "encoder_layer")


def test_two_classes_for_one_part_are_asked_about(tmp_path):
    folder = written(tmp_path, pieces__other=ATTENTION.replace("Headed", "Head"))
    with pytest.raises(Unclear, match="nothing says what self_attn is"):
        checked(folder, "pieces/layers.py:EncoderLayer", "encoder_layer")


@pytest.mark.proof
def test_a_number_by_default_for_keys_beside_heads_is_the_width_of_a_head(tmp_path):
    text = """
        import torch
        from torch import nn

        class MultiHeadAttention(nn.Module):
            def __init__(self, d_model=512, num_heads=8, k_dim=64, v_dim=64):
                super().__init__()
                self.heads = num_heads
                self.q = nn.Linear(d_model, num_heads * k_dim, bias=False)
                self.k = nn.Linear(d_model, num_heads * k_dim, bias=False)
                self.v = nn.Linear(d_model, num_heads * v_dim, bias=False)
                self.o = nn.Linear(num_heads * v_dim, d_model, bias=False)

            def forward(self, q, k, v):
                q, k, v = (
                    way(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                    for way, x in ((self.q, q), (self.k, k), (self.v, v))
                )
                mixed = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1) @ v
                return self.o(mixed.transpose(1, 2).flatten(2))
    """
    target = "heads.py:MultiHeadAttention"
    report = checked(write_files(tmp_path / "a", heads=text), target, "multi_head_attention")
    assert "k_dim=d_model/heads" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    wrong = text.replace("k.shape[-1] ** 0.5", "k.shape[-1]")
    report = checked(write_files(tmp_path / "b", heads=wrong), target, "multi_head_attention")
    assert not report.conforms


BLOCK = """
    import torch
    from torch import nn

    class EncoderBlock(nn.Module):
        def __init__(self, d_model, nhead, dim_feedforward, norm_factory, dropout=0.1):
            super().__init__()
            self.attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)
            self.norm1 = norm_factory(d_model)
            self.norm2 = norm_factory(d_model)
            self.fc1 = nn.Linear(d_model, dim_feedforward)
            self.fc2 = nn.Linear(dim_feedforward, d_model)
            self.drop = nn.Dropout(dropout)

        def forward(self, x):
            y = self.norm1(x)
            x = x + self.drop(self.attn(y, y, y, need_weights=False)[0])
            return x + self.drop(self.fc2(torch.relu(self.fc1(self.norm2(x)))))
"""


def test_norms_of_a_required_factory_are_those_of_torch(tmp_path):
    path = write_files(tmp_path, block=BLOCK) / "block.py"
    backend = attentest.adapted(f"{path}:EncoderBlock")
    assert any("norm_factory makes norms" in one for one in backend.assumed)
    compile(backend.written(), "own_backend.py", "exec")
    assert broken(backend, "encoder.layer-formula") == []


def test_mistake_in_a_layer_with_a_factory_of_norms_does_not_pass(tmp_path):
    wrong = BLOCK.replace("self.norm2(x)", "self.norm1(x)")
    path = write_files(tmp_path, block=wrong) / "block.py"
    assert broken(attentest.adapted(f"{path}:EncoderBlock"), "encoder.layer-formula")


def test_question_of_failing_calls_names_what_was_not_given(tmp_path):
    source = """
        from torch import nn

        class FeedForward(nn.Module):
            def __init__(self, d_model, d_ff):
                super().__init__()
                self.inner = nn.Linear(d_model, d_ff)
                self.outer = nn.Linear(d_ff, d_model)

            def forward(self, x, centroid=None):
                return self.outer(self.inner(x + centroid.mean()).relu())
    """
    path = write_files(tmp_path, block=source) / "block.py"
    with pytest.raises(Unclear, match="without centroid"):
        attentest.adapted(f"{path}:FeedForward")
