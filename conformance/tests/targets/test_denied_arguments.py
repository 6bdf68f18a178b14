"""Arguments that name an option of a choice, in code that follows it and in code that does not."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from mistaken_code import broken
from proof import share

import attentest
from attentest.targets.adapt.assumptions.choices import assumed_of_call, denied_by_call
from attentest.targets.adapt.reading import Reading
from attentest_spec import CHOICES

PARTS = """
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1, activation="gelu"):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.act = {"relu": F.relu, "gelu": F.gelu}[activation]

    def forward(self, x):
        return self.fc2(self.dropout(self.act(self.fc1(x))))


class BareFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, act=nn.SiLU, bias=False):
        super().__init__()
        self.fc1 = nn.Linear(d_model, d_ff, bias=bias)
        self.fc2 = nn.Linear(d_ff, d_model, bias=bias)
        self.act = act()

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


@dataclass
class Config:
    hidden_size: int = 16
    intermediate_size: int = 32
    hidden_act: str = "gelu"


class MLP(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.fc1 = nn.Linear(config.hidden_size, config.intermediate_size)
        self.fc2 = nn.Linear(config.intermediate_size, config.hidden_size)
        self.act = getattr(F, config.hidden_act)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, dropout=0.1, norm_first=True):
        super().__init__()
        self.attn = nn.MultiheadAttention(d_model, n_heads, dropout=dropout, batch_first=True)
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def attend(self, x):
        return self.dropout(self.attn(x, x, x, need_weights=False)[0])

    def feed(self, x):
        return self.dropout(self.fc2(self.dropout(F.relu(self.fc1(x)))))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.norm1(x))
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x))
        return self.norm2(x + self.feed(x))
"""


def _denied(folder: Path, name: str, source: str = PARTS, **reading: object) -> list[str]:
    file = folder / "parts.py"
    file.write_text(source)
    said = attentest.adapted(f"{file}:{name}", **reading).understood
    return [one for one in said if "though the argument" in one]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("FeedForward", {}),
        ("FeedForward", {"activation": "relu"}),
        ("BareFeedForward", {}),
        ("MLP", {}),
        ("EncoderLayer", {}),
        ("EncoderLayer", {"norm_first": False}),
    ],
)
def test_nothing_is_said_of_an_argument_that_is_followed(
    tmp_path: Path, name: str, given: dict[str, object]
) -> None:
    assert _denied(tmp_path, name, given=given) == []


@share(2, rest=1)
@pytest.mark.parametrize(
    ("name", "right", "wrong", "said"),
    [
        (
            "FeedForward",
            "self.act(self",
            "F.relu(self",
            "activation=relu, activation is gelu, gelu",
        ),
        ("BareFeedForward", "act()", "nn.ReLU()", "activation=relu, act is SiLU, silu"),
        (
            "BareFeedForward",
            ", bias=bias",
            "",
            "feed_forward_bias=present, bias is False, none",
        ),
        (
            "MLP",
            "getattr(F, config.hidden_act)",
            "F.relu",
            "activation=relu, config.hidden_act is gelu, gelu",
        ),
        (
            "EncoderLayer",
            "self.norm_first = norm_first",
            "self.norm_first = False",
            "norm_placement=post, norm_first is True, pre",
        ),
    ],
)
def test_an_argument_that_the_numbers_deny_is_said_with_the_option_to_declare(
    tmp_path: Path, name: str, right: str, wrong: str, said: str
) -> None:
    assert right in PARTS
    (one,) = _denied(tmp_path, name, PARTS.replace(right, wrong))
    found, argument, option = said.split(", ")
    assert one.startswith(f"assumed {found}, as measured, though the argument {argument}:")
    choice, _, _ = found.partition("=")
    assert f"--choice {choice}={option}" in one
    backend = attentest.adapted(f"{tmp_path / 'parts.py'}:{name}", choices={choice: option})
    assert broken(backend, CHOICES[choice].clause)


def _made(
    width: int, activation: str = "gelu", norm_first: bool = True, norm_eps: float = 1e-6
) -> None: ...


def _of_call(expression: str, **measured: object) -> list[str]:
    building = SimpleNamespace(expression=expression, space={"_made": _made})
    return assumed_of_call(measured, Reading(), "model", building)


def test_the_call_that_builds_a_model_is_read_as_well() -> None:
    measured = {"activation": "relu", "norm_placement": "post", "norm_epsilon": 1e-5}
    said = _of_call("_made(width=sizes.d_model)", **measured)
    assert [one.partition("=")[0] for one in said] == [f"assumed {name}" for name in measured]
    given = "_made(width=sizes.d_model, activation='relu', norm_first=False, norm_eps=1e-5)"
    assert _of_call(given, **measured) == []
    (one,) = _of_call(given, **{**measured, "norm_placement": "pre"})
    assert "though the argument norm_first is False" in one
    assert "the paper's" not in one


def _refusing(width: int) -> None:
    raise ValueError(f"no settings for a width of {width}")


def test_settings_that_refuse_the_sizes_are_left_out() -> None:
    expression = "_made(width=_refusing(sizes.d_model), activation='gelu')"
    building = SimpleNamespace(
        expression=expression, space={"_made": _made, "_refusing": _refusing}
    )
    (one,) = assumed_of_call({"activation": "relu"}, Reading(), "model", building)
    assert "though the argument activation is gelu" in one


def test_choices_that_the_user_declares_are_not_assumed() -> None:
    building = SimpleNamespace(expression="_made(sizes.d_model)", space={"_made": _made})
    declared = Reading(choices={"norm_epsilon": 1e-5})
    assert denied_by_call({"norm_epsilon": 1e-5}, declared, "model", building) == []


ROTARY = """
import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rotated(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Attention(nn.Module):
    def __init__(self, dim, n_heads, rope_theta):
        super().__init__()
        self.n_heads, self.head_dim, self.theta = n_heads, dim // n_heads, rope_theta
        for name in ("wq", "wk", "wv", "wo"):
            setattr(self, name, nn.Linear(dim, dim, bias=False))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            w(x).view(B, T, self.n_heads, self.head_dim).transpose(1, 2)
            for w in (self.wq, self.wk, self.wv)
        )
        exponents = torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim
        angles = torch.outer(torch.arange(T, dtype=torch.float64), self.theta**-exponents)
        angles = torch.cat((angles, angles), -1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, dim, n_heads, hidden, norm_eps, rope_theta):
        super().__init__()
        self.attention_norm, self.ffn_norm = RMSNorm(dim, norm_eps), RMSNorm(dim, norm_eps)
        self.attention = Attention(dim, n_heads, rope_theta)
        self.gate = nn.Linear(dim, hidden, bias=False)
        self.up = nn.Linear(dim, hidden, bias=False)
        self.down = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        h = self.ffn_norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, n_layers, hidden, norm_eps=1e-5, rope_theta=5e5):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(
            Block(dim, n_heads, hidden, norm_eps, rope_theta) for _ in range(n_layers)
        )
        self.norm = RMSNorm(dim, norm_eps)
        self.lm_head = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, ids):
        x = self.tok(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))
"""


@pytest.mark.proof
def test_nothing_is_said_of_a_decoder_only_model_that_follows_its_arguments(
    tmp_path: Path,
) -> None:
    assert _denied(tmp_path, "Llama", ROTARY) == []


@pytest.mark.proof
def test_arguments_of_a_decoder_only_model_that_it_does_not_follow_are_named(
    tmp_path: Path,
) -> None:
    wrong = ROTARY.replace("hidden, norm_eps, rope_theta) for", "hidden, 1e-6, 1e4) for")
    assert wrong != ROTARY
    wrong = wrong.replace("self.norm = RMSNorm(dim, norm_eps)", "self.norm = RMSNorm(dim, 1e-6)")
    said = _denied(tmp_path, "Llama", wrong)
    found = [one.partition(", ")[0] for one in said]
    assert found == ["assumed rotary_base=10000", "assumed rms_epsilon=1e-06"]


GATED = """
import torch.nn.functional as F
from torch import nn


class SwiGLUFeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w1, self.w3 = nn.Linear(d_model, d_ff), nn.Linear(d_model, d_ff)
        self.w2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))
"""


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("F.silu", "F.relu", "activation=relu, as measured, though the name SwiGLUFeedForward"),
        ("F.silu", "F.gelu", "activation=gelu, as measured, though the name SwiGLUFeedForward"),
        ("SwiGLU", "GEGLU", "activation=silu, as measured, though the name GEGLUFeedForward"),
        (" * self.w3(x)", "", "feed_forward_gate=none, as measured, though the name SwiGLU"),
    ],
)
def test_the_name_of_a_gated_network_denies_another_activation(
    tmp_path: Path, right: str, wrong: str, said: str
) -> None:
    assert right in GATED
    name = "GEGLUFeedForward" if wrong == "GEGLU" else "SwiGLUFeedForward"
    file = tmp_path / "own.py"
    file.write_text(GATED.replace(right, wrong))
    if "none" in said:  # a matrix is left over
        file.write_text(
            file.read_text().replace(", self.w3 =", " =").replace(", nn.Linear(d_model, d_ff)", "")
        )
    backend = attentest.adapted(f"{file}:{name}")
    assert any(said in one for one in backend.assumed)


def test_the_name_of_a_gated_network_denies_nothing_that_it_says(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(GATED)
    backend = attentest.adapted(f"{file}:SwiGLUFeedForward")
    assert not any("though" in one for one in backend.assumed)
