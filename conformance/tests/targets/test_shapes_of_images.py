"""Encoders of images by shapes, by the width of a head, and with a mask that no call gives."""

import pytest
from mistaken_code import adapted, broken, edited
from user_files import write_files

from attentest.targets.adapt import Unclear
from attentest.targets.members import members

CODE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, h_size):
        super().__init__()
        self.n_head, self.scale = dim // h_size, h_size**-0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * self.scale
        if mask is not None:
            scores = scores.masked_fill(~torch.cat([mask[:, :1], mask], dim=1)[:, None], -1e9)
        return self.proj((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, d))


class Stack(nn.Module):
    def __init__(self, dim, depth, h_size, mlp_dim):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(dim, h_size), nn.LayerNorm(dim), nn.LayerNorm(dim),
            nn.Sequential(nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim))])
            for _ in range(depth)
        )

    def forward(self, x, mask=None):
        for attn, norm, other, mlp in self.layers:
            x = x + attn(norm(x), mask=mask)
            x = x + mlp(other(x))
        return x


class ViT(nn.Module):
    def __init__(
        self, image_shape, patch_shape: tuple[int, int], num_classes, dim, depth, h_size, mlp_dim
    ):
        super().__init__()
        channels, height, width = image_shape
        rows, columns = patch_shape
        self.patches = nn.Conv2d(channels, dim, kernel_size=patch_shape, stride=patch_shape)
        number = (height // rows) * (width // columns)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.places = nn.Parameter(torch.randn(1, number + 1, dim))
        self.stack, self.head = Stack(dim, depth, h_size, mlp_dim), nn.Linear(dim, num_classes)

    def forward(self, img, mask=None):
        x = self.patches(img).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.places
        return self.head(self.stack(x, mask)[:, 0])
"""
MERGED = ("(scores.softmax(dim=-1) @ v).transpose(1, 2)", "(scores.softmax(dim=-1) @ v)")
ONE_HEAD = ("self.n_head, self.scale = dim // h_size", "self.number, self.scale = dim // h_size")
LAST = ("channels, height, width = image_shape", "height, width, channels = image_shape")


@pytest.mark.proof
@pytest.mark.parametrize("edits", [(), (LAST,)], ids=["channels first", "channels last"])
def test_encoder_of_image_shapes_is_judged_with_several_heads(tmp_path, edits):
    backend = adapted(tmp_path, "ViT", edited(CODE, *edits))
    assert backend.limits.heads is None
    assert not broken(backend, "encoder.formula")
    assert broken(adapted(tmp_path, "ViT", edited(CODE, MERGED, *edits)), "encoder.formula")


def test_encoder_that_holds_no_number_of_heads_is_judged_with_one(tmp_path):
    named = edited(CODE, ONE_HEAD, ("3, self.n_head, -1", "3, self.number, -1"))
    assert adapted(tmp_path, "ViT", named).limits.heads == 1


WIDTHS = """
    import torch
    from torch import nn


    class FeedForward(nn.Module):
        def __init__(self, d_model, ffn):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(d_model, ffn), nn.ReLU(), nn.Linear(ffn, d_model))

        def forward(self, x):
            return self.net(x)


    class DecoderLayer(nn.Module):
        def __init__(self, d_model, heads, ffn):
            super().__init__()
            self.own = nn.MultiheadAttention(d_model, heads, batch_first=True)
            self.cross = nn.MultiheadAttention(d_model, heads, batch_first=True)
            self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3)])
            self.ff = FeedForward(d_model, ffn)

        def forward(self, x, memory, mask=None):
            x = self.norms[0](x + self.own(x, x, x, attn_mask=mask)[0])
            x = self.norms[1](x + self.cross(x, memory, memory)[0])
            return self.norms[2](x + self.ff(x))


    class BertLanguageModel(nn.Module):
        def __init__(self, vocab_size, hidden, layers, heads, max_len):
            super().__init__()
            self.tokens = nn.Embedding(vocab_size, hidden)
            self.places = nn.Embedding(max_len, hidden)
            self.layers = nn.ModuleList(
                nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, batch_first=True)
                for _ in range(layers)
            )
            self.head = nn.Linear(hidden, vocab_size)

        def forward(self, ids):
            x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
            for layer in self.layers:
                x = layer(x)
            return self.head(x)
"""


def test_width_by_the_name_of_a_part_is_no_part(tmp_path):
    folder = write_files(tmp_path, widths=WIDTHS)
    backend = adapted(folder, "DecoderLayer", (folder / "widths.py").read_text())
    assert "ffn=d_ff" in "\n".join(backend.understood)


ONE_ATTENTION = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.fc = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            one(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for one, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        scores = q @ k.mT / q.size(-1) ** 0.5
        scores = scores if mask is None else scores.masked_fill(~mask, -1e9)
        return self.fc((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff):
        super().__init__()
        self.att = Attention(d_model, heads)
        self.norms = nn.ModuleList([nn.LayerNorm(d_model) for _ in range(3)])
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x, memory, memory_mask, mask):
        x = self.norms[0](x + self.att(x, x, x, mask))
        x = self.norms[1](x + self.att(x, memory, memory, memory_mask))
        return self.norms[2](x + self.ff(x))
"""


def test_one_attention_for_target_and_memory_is_a_question_that_names_it(tmp_path):
    with pytest.raises(Unclear, match="called twice: one attention for the target and"):
        adapted(tmp_path, "DecoderLayer", ONE_ATTENTION)


def test_language_model_that_fills_in_tokens_is_an_encoder(tmp_path):
    folder = write_files(tmp_path, widths=WIDTHS)
    found = {one.name: one.component for one in members(str(folder / "widths.py"))}
    assert found["BertLanguageModel"] == "encoder"


NORMED = """
import torch
from torch import nn


class ResidualConnection(nn.Module):
    def __init__(self, d_model, dropout=0.1):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(self.norm(sublayer(x)))
"""


def test_norm_of_what_a_sublayer_returns_is_a_question(tmp_path):
    with pytest.raises(Unclear, match="norm norms what a sublayer returns before it is added"):
        adapted(tmp_path, "ResidualConnection", NORMED)
    usual = ("x + self.dropout(self.norm(sublayer(x)))", "x + self.dropout(sublayer(self.norm(x)))")
    backend = adapted(tmp_path, "ResidualConnection", edited(NORMED, usual))
    assert not broken(backend, "residual.formula")
    lost = (usual[0], usual[1].removeprefix("x + "))
    assert broken(adapted(tmp_path, "ResidualConnection", edited(NORMED, lost)), "residual.formula")
