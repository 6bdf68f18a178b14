"""Styles of published packages: networks of any depth, masks of full shape, odd rotary widths."""

from pathlib import Path
from textwrap import dedent

import pytest
from proof import share

from attentest import check
from attentest.targets.adapt.reading import Unclear

MLP = """
    from torch import nn
    from torch.nn import functional as F

    class MLP(nn.Module):
        def __init__(self, input_dim, hidden_dim, output_dim, num_layers):
            super().__init__()
            self.num_layers = num_layers
            h = [hidden_dim] * (num_layers - 1)
            self.layers = nn.ModuleList(
                nn.Linear(n, k) for n, k in zip([input_dim] + h, h + [output_dim])
            )

        def forward(self, x):
            for i, layer in enumerate(self.layers):
                x = F.relu(layer(x)) if i < self.num_layers - 1 else layer(x)
            return x
"""

FULL_MASK = '''
    import torch
    from torch import nn
    from torch.nn import functional as F

    class MultiheadAttention(nn.Module):
        """Attention with a mask and one of padding.

        key_padding_mask: bool (batch, src_len), True positions are ignored.
        attn_mask: bool, True positions are ignored; (batch, num_heads, tgt_len, src_len).
        """

        def __init__(self, embed_dim, num_heads):
            super().__init__()
            self.h = num_heads
            self.q, self.k, self.v, self.o = (nn.Linear(embed_dim, embed_dim) for _ in range(4))

        def forward(self, query, key, value, key_padding_mask=None, attn_mask=None):
            b, t, d = query.shape
            s = key.shape[1]
            q, k, v = (
                f(x).view(b, -1, self.h, d // self.h).transpose(1, 2)
                for f, x in ((self.q, query), (self.k, key), (self.v, value))
            )
            scores = q @ k.transpose(-2, -1) / (d // self.h) ** 0.5
            if attn_mask is not None:
                if attn_mask.shape != (b, self.h, t, s):
                    raise ValueError(f"the mask has the shape {tuple(attn_mask.shape)}")
                scores = scores.masked_fill(attn_mask, float("-inf"))
            if key_padding_mask is not None:
                scores = scores.masked_fill(key_padding_mask[:, None, None], float("-inf"))
            return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
'''

CONFIGURED = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class CausalSelfAttention(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd)
            self.c_proj = nn.Linear(config.n_embd, config.n_embd)
            self.drop = nn.Dropout(config.dropout)
            self.heads, self.flash = config.n_head, config.dropout == 0.0
            if not self.flash:
                size = config.block_size
                self.register_buffer("bias", torch.tril(torch.ones(size, size)))

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (
                y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.c_attn(x).chunk(3, -1)
            )
            if self.flash:
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            else:
                scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
                scores = scores.masked_fill(self.bias[:t, :t] == 0, float("-inf"))
                y = self.drop(scores.softmax(-1)) @ v
            return self.drop(self.c_proj(y.transpose(1, 2).reshape(b, t, d)))
"""

FEATURES = """
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, dim, heads):
            super().__init__()
            self.h = heads
            self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim) for _ in range(4))
            self.register_buffer("projection", torch.randn(64, dim // heads))

        def features(self, x):
            scaled = x / x.shape[-1] ** 0.25
            norm = (scaled**2).sum(-1, keepdim=True) / 2
            return torch.exp(scaled @ self.projection.T - norm) + 1e-4

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (
                f(x).view(b, t, self.h, -1).transpose(1, 2)
                for f in (self.to_q, self.to_k, self.to_v)
            )
            q, k = self.features(q), self.features(k)
            y = q @ (k.transpose(-2, -1) @ v) / (q @ k.sum(-2)[..., None])
            return self.to_out(y.transpose(1, 2).reshape(b, t, d))
"""

ROTARY = """
    import torch

    def rotary(x):
        width = x.shape[-1]
        half = width // 2
        freqs = 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64)[:half] / width)
        angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * freqs
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:2 * half]
        return torch.cat((a * cos - b * sin, a * sin + b * cos, x[..., 2 * half:]), -1)
"""


def written(folder: Path, code: str, name: str) -> str:
    (folder / "code.py").write_text(dedent(code))
    return f"{folder / 'code.py'}:{name}"


def broken(target: str, *clauses: str) -> list[str]:
    report = check(target, clauses=clauses)
    return [one.clause for one in report.failures]


def test_a_network_of_any_depth_is_judged_with_two_layers(tmp_path):
    target = written(tmp_path, MLP, "MLP")
    assert broken(target, "feed_forward.formula", "model.global-state-untouched") == []


def test_its_mistake_is_detected(tmp_path):
    target = written(tmp_path, MLP.replace("F.relu(layer(x))", "F.gelu(layer(x) + 1)"), "MLP")
    assert broken(target, "feed_forward.formula") == ["feed_forward.formula"]


def test_a_mask_with_an_entry_for_every_head_alone_is_a_question(tmp_path):
    target = written(tmp_path, FULL_MASK, "MultiheadAttention")
    with pytest.raises(Unclear, match="No form of mask that was tried is accepted as attn_mask"):
        check(target)


@pytest.mark.parametrize("wrong", [False, True])
def test_frequencies_of_an_odd_width_may_be_its_own(tmp_path, wrong):
    code = ROTARY.replace("x[..., 2 * half:]", "-x[..., 2 * half:]") if wrong else ROTARY
    target = written(tmp_path, code, "rotary")
    assert broken(target, "rotary.odd-width") == ["rotary.odd-width"] * wrong


@share(2, rest=1)
@pytest.mark.parametrize("wrong", [False, True])
def test_fields_that_are_read_where_there_is_dropout_are_given(tmp_path, wrong):
    code = CONFIGURED.replace("self.drop(scores", "F.dropout(scores") if wrong else CONFIGURED
    target = written(tmp_path, code, "CausalSelfAttention")
    clauses = ("multi_head_attention.formula", "multi_head_attention.deterministic")
    assert broken(target, *clauses) == [clauses[1]] * wrong


@pytest.mark.proof
def test_random_features_are_no_mistake_in_the_formula(tmp_path):
    target = written(tmp_path, FEATURES, "Attention")
    with pytest.raises(Unclear, match="its buffer projection are drawn when it is built"):
        check(target)


ROWS = """
    import torch
    from torch import nn
    from torch.nn import functional as F

    class PositionalEmbedding(nn.Embedding):
        def forward(self, x, positions=None, **kwargs):
            if positions is None:
                positions = torch.arange(2, x.size(1) + 2, device=x.device).unsqueeze(0)
            return F.embedding(positions, self.weight, self.padding_idx)
"""


@pytest.mark.parametrize("first", [2, 1])
def test_rows_in_front_of_the_first_position_are_a_question(tmp_path, first):
    code = ROWS.replace("arange(2", f"arange({first}").replace("+ 2", f"+ {first}")
    target = written(tmp_path, code, "PositionalEmbedding")
    if first == 2:
        with pytest.raises(Unclear, match="position 0 has row 2 of its table"):
            check(target)
    else:
        assert "positional_encoding.formula" in broken(target)


MANY = """
    from torch import nn

    class Transformer(nn.Module):
        def __init__(self, *, a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, b2, b3):
            super().__init__()
            self.layers = nn.ModuleList()

        def forward(self, tokens):
            return tokens
"""


def test_a_dozen_arguments_without_telling_names_are_a_question(tmp_path):
    with pytest.raises(Unclear, match="Transformer could not be built as a whole model"):
        check(written(tmp_path, MANY, "Transformer"))
