"""Signatures of single components as libraries publish them, and wrong twins of these."""

import pytest
import torch
from proof import share
from torch import Tensor, nn
from torch.nn import functional

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.resolve import load

torch.set_num_threads(1)

FORMULA = ["multi_head_attention.formula"]


class CrossAttention(nn.Module):
    """Attention to a context, whose widths have names of their own, in a numbered block."""

    def __init__(
        self, query_dim: int, context_dim: int, num_heads: int, head_dim: int, block_idx: int
    ) -> None:
        super().__init__()
        inner, self.heads, self.index = num_heads * head_dim, num_heads, block_idx
        self.to_q = nn.Linear(query_dim, inner, bias=False)
        self.to_k = nn.Linear(context_dim, inner, bias=False)
        self.to_v = nn.Linear(context_dim, inner, bias=False)
        self.to_out = nn.Linear(inner, query_dim, bias=False)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        query, key, value = map(self.split, (self.to_q(x), self.to_k(context), self.to_v(context)))
        return self.to_out(self.merge(self.scores(query, key).softmax(-1) @ value))


class Unscaled(CrossAttention):
    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        return query @ key.transpose(-1, -2)


class MergedWithoutTranspose(CrossAttention):
    def merge(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[2], -1)


class ValuesOfTheQueries(CrossAttention):
    def split(self, x: Tensor) -> Tensor:
        return super().split(x.flip(-1))


def test_attention_to_a_context_is_read_without_an_option():
    report = attentest.check(CrossAttention, "multi_head_attention", clauses=FORMULA)
    assert report.conforms
    assert report.compared


@share(2)
@pytest.mark.parametrize("twin", [Unscaled, MergedWithoutTranspose, ValuesOfTheQueries])
def test_wrong_attention_to_a_context_never_conforms(twin):
    try:
        report = attentest.check(twin, "multi_head_attention", clauses=FORMULA)
    except Unclear:
        return
    assert not report.conforms


class Flagged(nn.Module):
    """Self-attention with a flag, called a mask, that hides later positions."""

    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, causal_mask: bool = True) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        result = functional.scaled_dot_product_attention(*parts, is_causal=self.hides(causal_mask))
        return self.out(result.transpose(1, 2).flatten(2))

    def hides(self, flag: bool) -> bool:
        return flag


class FlagIgnored(Flagged):
    def hides(self, flag: bool) -> bool:
        return False


def test_a_flag_that_is_called_a_mask_keeps_its_default():
    report = attentest.check(Flagged, "multi_head_attention", clauses=FORMULA)
    assert report.conforms, str(report)
    assert "it takes no mask" in "\n".join(report.inferred)


def test_a_flag_that_hides_nothing_is_asked_about():
    with pytest.raises(Unclear, match="causal_mask=True, its default"):
        attentest.check(FlagIgnored, "multi_head_attention", clauses=FORMULA)
    choices = {"attention_causality": "by-mask"}
    report = attentest.check(FlagIgnored, "multi_head_attention", clauses=FORMULA, choices=choices)
    assert report.conforms, str(report)


class Settings:
    """The settings of a GPT-2."""

    def __init__(self, n_embd: int = 8, n_head: int = 2) -> None:
        self.n_embd, self.n_head = n_embd, n_head


class MLP(nn.Module):
    """The network of a GPT-2, whose inner width is an argument beside its configuration."""

    def __init__(self, n_state: int, config: Settings) -> None:
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, n_state)
        self.c_proj = nn.Linear(n_state, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return self.c_proj(self.active(self.c_fc(x)))

    def active(self, x: Tensor) -> Tensor:
        return functional.gelu(x)


class WithoutActivation(MLP):
    def active(self, x: Tensor) -> Tensor:
        return x


class Attention(Flagged):
    def __init__(self, nx: int, config: Settings) -> None:
        super().__init__(nx, config.n_head)


def test_arguments_of_a_gpt2_are_read_without_an_option():
    assert attentest.check(MLP, "feed_forward", clauses=["feed_forward.formula"]).conforms
    report = attentest.check(Attention, "multi_head_attention", clauses=FORMULA)
    assert report.conforms
    assert report.compared
    try:
        wrong = attentest.check(WithoutActivation, clauses=["feed_forward.formula"])
    except Unclear:
        return
    assert not wrong.conforms


class DecoderLayer(nn.TransformerEncoderLayer):
    """A layer of a decoder-only model."""

    def __init__(self, d_model: int, nhead: int, d_ff: int) -> None:
        super().__init__(d_model, nhead, d_ff, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x)


def test_a_decoder_layer_of_one_sequence_is_asked_with_what_to_add():
    with pytest.raises(Unclear, match=r"no input for a memory.*--as encoder_layer .*\(tried\)"):
        attentest.adapted(DecoderLayer)


class ScaledRotary(nn.Module):
    """Rotary positions whose frequencies are divided by a factor."""

    def __init__(self, head_dim: int, factor: float = 2.0) -> None:
        super().__init__()
        self.width, self.factor = head_dim, factor

    def forward(self, x: Tensor) -> Tensor:  # (B, H, T, D)
        columns = torch.arange(0, self.width, 2, dtype=torch.float64)
        frequencies = 10000 ** (-columns / self.width) / self.factor
        angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequencies
        even, odd, cosines, sines = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
        turned = (even * cosines - odd * sines, even * sines + odd * cosines)
        return torch.stack(turned, -1).flatten(-2).to(x.dtype)


def test_frequencies_that_an_argument_scales_are_asked_about():
    with pytest.raises(Unclear, match=r"factor scales its frequencies by default.*--give factor=1"):
        attentest.adapted(ScaledRotary, "rotary")
    report = attentest.check(
        ScaledRotary, "rotary", clauses=["rotary.formula"], given={"factor": 1}
    )
    assert report.conforms, str(report)


def test_a_folder_without_an_init_file_between_packages_belongs_to_them(tmp_path):
    inner = tmp_path / "library" / "models" / "matching"
    inner.mkdir(parents=True)
    for folder in (inner, tmp_path / "library"):
        (folder / "__init__.py").write_text("")
    (inner / "__init__.py").write_text("from ...width import WIDTH\n")
    (tmp_path / "library" / "width.py").write_text("WIDTH = 4\n")
    (inner / "layers.py").write_text("from torch.nn import LayerNorm\n")
    assert load(f"{inner / 'layers.py'}:LayerNorm") is not None


class StaticAttention(nn.Module):
    """Attention without parameters, whose call is a static method."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        return scores.softmax(-1) @ v


class UnscaledStaticAttention(StaticAttention):
    """The same without the scale."""

    @staticmethod
    def forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return StaticAttention.forward(q * k.shape[-1] ** 0.5, k, v, mask)


def test_call_that_is_a_static_method_has_no_argument_for_the_module():
    clauses = ["attention.formula"]
    assert attentest.check(StaticAttention, "attention", clauses=clauses).conforms
    assert not attentest.check(UnscaledStaticAttention, "attention", clauses=clauses).conforms
