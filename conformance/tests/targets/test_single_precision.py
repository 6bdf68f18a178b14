"""Code that computes in float32 in part is judged in it, and its mistakes are found."""

import sys

import pytest
import torch
from click.testing import CliRunner
from folders import SUPPORT
from proof import share
from torch import nn

import attentest
from attentest.interfaces.cli.main import main
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear

WILD = SUPPORT / "wild"
sys.path.insert(0, str(WILD))


@pytest.mark.proof
def test_attention_with_a_scale_in_single_precision_is_judged_in_it():
    target = str(WILD / "published.py:scaled_dot_product_attention")
    read = attentest.adapted(target)
    said = "\n".join(read.understood)
    assert "assumed that it computes in float32" in said
    assert "softmax_arithmetic" not in said
    strict = attentest.adapted(target, strict=True)
    for backend, status in ((read, "pass"), (strict, "violation")):
        bench = Bench.for_status(backend, effort=0.1)
        assert judge(bench, "attention.formula").status == status


SLOPES = """
import math

import torch
from torch import nn


def slopes(heads):
    whole = 2 ** math.floor(math.log2(heads))
    several = [2 ** (-8 * place / whole) for place in range(1, whole + 1)]
    between = [2 ** (-4 * place / whole) for place in range(1, 2 * whole, 2)]
    return torch.tensor([*several, *between[: heads - whole]])


class AlibiAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.register_buffer("slopes", slopes(n_heads), persistent=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            part.reshape(b, t, self.n_heads, -1).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        ahead = torch.arange(t)[None, :] - torch.arange(t)[:, None]
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores + ahead * self.slopes.to(x.dtype)[:, None, None]
        scores = scores.masked_fill(ahead > 0, -torch.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))
"""


@pytest.mark.proof
def test_attention_with_slopes_in_single_precision_conforms(tmp_path):
    sound, wrong = tmp_path / "sound.py", tmp_path / "wrong.py"
    sound.write_text(SLOPES)
    wrong.write_text(SLOPES.replace("-4 * place", "-2 * place"))
    slug = "multi_head_attention.formula"
    report = attentest.check(f"{sound}:AlibiAttention", clauses=[slug])
    assert report.conforms, str(report)
    assert attentest.check(f"{wrong}:AlibiAttention", clauses=[slug])[slug].status == "violation"
    exact = tmp_path / "exact.py"
    exact.write_text(SLOPES.replace("whole]])", "whole]], dtype=torch.float64)"))
    report = attentest.check(f"{exact}:AlibiAttention", clauses=[slug])
    assert "float32" not in "\n".join(report.inferred)
    assert report.conforms, str(report)


TURNED = """
import math

import torch
from torch import nn


class RotaryAttention(nn.Module):
    def __init__(self, hidden_dim, n_heads, dropout=0.0):
        super().__init__()
        self.heads, self.width = n_heads, hidden_dim // n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(hidden_dim, hidden_dim, bias=False) for _ in range(4)
        )
        self.drop = nn.Dropout(dropout)
        rates = 10000.0 ** -(torch.arange(0, self.width, 2).float() / self.width)
        self.register_buffer("rates", rates, persistent=False)

    def turned(self, x):
        angles = torch.arange(x.shape[2]).float()[:, None] * self.rates.float()
        angles = torch.cat((angles, angles), -1)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos().to(x) + torch.cat((-second, first), -1) * angles.sin().to(x)

    def forward(self, x, mask=None):
        split = [part(x).unflatten(-1, (self.heads, -1)) for part in
                 (self.q_proj, self.k_proj, self.v_proj)]
        q, k, v = (one.transpose(1, 2) for one in split)
        scores = self.turned(q) @ self.turned(k).transpose(2, 3) / math.sqrt(self.width)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        weights = self.drop(scores.softmax(-1, dtype=torch.float32).to(x.dtype))
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))
"""
SINGLE = "-1, dtype=torch.float32"


@share(4)
@pytest.mark.parametrize(
    ("changed", "by", "arithmetic", "status"),
    [
        (SINGLE, SINGLE, "float32", "pass"),
        (SINGLE, "-1", "as-computed", "pass"),
        ("math.sqrt(self.width)", "math.sqrt(2 * self.width)", None, None),
        (".to(x.dtype))\n", ".to(x.dtype) * (1 - self.drop.p))\n", "float32", "violation"),
    ],
)
def test_softmax_in_single_precision_beside_rotary_tables_in_it(
    tmp_path, changed, by, arithmetic, status
):
    assert changed in TURNED
    (tmp_path / "turned.py").write_text(TURNED.replace(changed, by))
    target = str(tmp_path / "turned.py:RotaryAttention")
    if status is None:  # a mistake in the scores is not absorbed
        with pytest.raises(Unclear):
            attentest.adapted(target)
        return
    read = attentest.adapted(target)
    assert read.choices["rotary_arithmetic"] == "float32"
    assert read.choices.get("softmax_arithmetic", "as-computed") == arithmetic
    bench = Bench.for_status(read, effort=0.1)
    assert judge(bench, "multi_head_attention.deterministic").status == status
    assert judge(bench, "multi_head_attention.mask-per-head").status == "pass"


def test_code_that_computes_in_single_precision_is_judged_in_it():
    target, slug = str(WILD / "published.py:LayerNormFp32"), "layer_norm.formula"
    report = attentest.check(target, clauses=[slug, "layer_norm.gain-and-bias"])
    assert "assumed that it computes in float32" in "\n".join(report.inferred)
    assert report.conforms, str(report)
    assert report.compared == 2
    strict = attentest.check(target, "layer_norm", strict=True, clauses=[slug])
    assert strict[slug].status == "violation"


def test_mistake_in_code_that_computes_in_single_precision_is_found():
    target, slug = str(WILD / "published.py:BlurredNorm"), "layer_norm.formula"
    report = attentest.check(target, "layer_norm", clauses=[slug])
    assert report[slug].status == "violation"


CAUSAL = """
import torch
from torch import nn


class GELU(nn.Module):
    def forward(self, x):
        root = torch.sqrt(torch.tensor(2.0 / torch.pi))
        return 0.5 * x * (1 + torch.tanh(root * (x + 0.044715 * torch.pow(x, 3))))


class CausalBlock(nn.Module):
    def __init__(self, emb_dim, n_heads, drop_rate):
        super().__init__()
        self.att = nn.MultiheadAttention(emb_dim, n_heads, batch_first=True)
        self.ff = nn.Sequential(
            nn.Linear(emb_dim, 4 * emb_dim), GELU(), nn.Linear(4 * emb_dim, emb_dim)
        )
        self.norm1, self.norm2 = nn.LayerNorm(emb_dim), nn.LayerNorm(emb_dim)
        self.drop = nn.Dropout(drop_rate)

    def forward(self, x):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        y = self.norm1(x)
        x = x + self.drop(self.att(y, y, y, attn_mask=hidden, need_weights=False)[0])
        return x + self.drop(self.ff(self.norm2(x)))
"""


@pytest.mark.proof
def test_causal_layer_with_a_constant_in_single_precision_is_judged_in_it(tmp_path):
    (tmp_path / "own.py").write_text(CAUSAL)
    read = attentest.adapted(f"{tmp_path / 'own.py'}:CausalBlock", component="encoder_layer")
    assert "assumed that it computes in float32" in "\n".join(read.understood)
    bench = Bench.for_status(read, effort=0.1)
    assert judge(bench, "encoder.layer-formula").status == "pass"


@pytest.mark.proof
def test_mistake_beside_numbers_in_single_precision_is_the_only_finding(tmp_path):
    """The rounding of the constant is not found as well: the code is judged in float32."""
    wrong = CAUSAL.replace("self.drop(self.ff(self.norm2(x)))", "self.drop(self.ff(self.norm1(x)))")
    assert wrong != CAUSAL
    (tmp_path / "own.py").write_text(wrong)
    target = f"{tmp_path / 'own.py'}:CausalBlock"
    read = attentest.adapted(target, component="encoder_layer", anyway=True)
    assert "float64" not in read.limits.precisions
    bench = Bench.for_status(read, effort=0.1)
    assert judge(bench, "encoder.layer-formula").status == "violation"


@pytest.mark.proof
def test_mistake_beside_whole_numbers_in_single_precision_is_judged_in_double(tmp_path):
    whole = CAUSAL.replace("torch.tensor(2.0 / torch.pi)", "x.new_tensor(2.0 / torch.pi)")
    whole = whole.replace("dtype=torch.bool).triu(1)", "dtype=torch.float32).triu(1).bool()")
    wrong = whole.replace("self.drop(self.ff(self.norm2(x)))", "self.drop(self.ff(self.norm1(x)))")
    (tmp_path / "own.py").write_text(wrong)
    target = f"{tmp_path / 'own.py'}:CausalBlock"
    read = attentest.adapted(target, component="encoder_layer", anyway=True)
    assert "float64" in read.limits.precisions


AUTOCAST = """
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn, self.proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.up, self.down = nn.Linear(n_embd, 4 * n_embd), nn.Linear(4 * n_embd, n_embd)

    def forward(self, x):
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            b, t, c = x.shape
            q, k, v = self.attn(self.ln_1(x)).view(b, t, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
            return x + self.down(F.gelu(self.up(self.ln_2(x))))
"""


@pytest.mark.proof
def test_code_under_autocast_is_judged_in_the_precisions_that_it_keeps(tmp_path):
    file = tmp_path / "autocast.py"
    file.write_text(AUTOCAST)
    read = attentest.adapted(f"{file}:Block")
    assert read.limits.precisions == ("float64", "bfloat16")
    slug = "encoder.layer-formula"
    assert judge(Bench.for_status(read, effort=0.2), slug).status == "pass"
    words = ["check", str(file), "--dtype", "float32", "--clause", slug]
    ran = CliRunner().invoke(main, words, env={"COLUMNS": "400"})
    assert ran.exit_code == 3, ran.output
    said = "no numbers were compared of Block (Block does not compute in float32)"
    assert said in ran.output


class ScaledDotProductAttention(nn.Module):
    """Attention by a root that is a tensor in float32."""

    def __init__(self, d_k):
        super().__init__()
        self.scale = torch.sqrt(torch.tensor(d_k))

    def forward(self, query, key, value):
        """Return the attended values."""
        return self.weights(query @ key.transpose(-2, -1) / self.scale) @ value

    def weights(self, scores):
        """Return the weights."""
        return scores.softmax(dim=-1)


class SingleSoftmaxAttention(ScaledDotProductAttention):
    """Attention whose softmax is in float32."""

    def __init__(self, d_k):
        super().__init__(d_k)
        self.scale = d_k**0.5

    def weights(self, scores):
        """Return the weights, computed in float32."""
        return scores.float().softmax(dim=-1).to(scores.dtype)


def test_a_root_in_float32_is_no_softmax_in_float32() -> None:
    backend = attentest.adapted(ScaledDotProductAttention)
    assert "softmax_arithmetic" not in backend.choices
    assert "float64" not in backend.limits.precisions
    slugs = ["attention.formula", "attention.softmax-arithmetic", "attention.score-scale"]
    assert attentest.check(ScaledDotProductAttention, clauses=slugs).conforms


def test_a_softmax_in_float32_is_one_where_the_root_is_exact() -> None:
    backend = attentest.adapted(SingleSoftmaxAttention, "attention")
    assert backend.choices["softmax_arithmetic"] == "float32"
    assert "float64" in backend.limits.precisions
