"""Sound code in styles of published packages that was accused once, and wrong twins of it."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attentest
from attentest.judging.bench import Bench
from attentest.judging.judge import judge
from attentest.targets.adapt.reading import Unclear, Uncovered


class TorchRMSNorm(nn.Module):
    """A norm whose epsilon is None unless one is given, as in torch."""

    def __init__(self, normalized_shape: int, eps: float | None = None) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(normalized_shape))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self.weight, self.eps)


class CentredRMSNorm(TorchRMSNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x - 0.1 * x.mean(-1, keepdim=True))


class BareRMSNorm(nn.Module):
    """A norm that gives no epsilon at all."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, x.shape[-1:], self.weight)


def rms_norm(x: Tensor) -> Tensor:
    """Return x normed by its root mean square, without a weight."""
    return functional.rms_norm(x, x.shape[-1:])


def statuses(thing: object, component: str, *names: str, **settings: object) -> dict[str, str]:
    """Return the status of clauses of `thing`, without diagnosis."""
    read = attentest.adapted(thing, component=component, **settings)
    bench = Bench.for_status(read, effort=0.2)
    return {one: judge(bench, f"{component}.{one}").status.value for one in names}


@pytest.mark.proof
def test_rms_norm_with_an_epsilon_of_none_is_judged_with_one():
    names = ("formula", "epsilon", "epsilon-place", "zero-row-finite")
    assert set(statuses(TorchRMSNorm, "rms_norm", *names).values()) <= {"pass", "deviation"}
    read = "\n".join(attentest.adapted(TorchRMSNorm).understood)
    assert "assumed eps=1e-06: its default, None" in read
    read = "\n".join(attentest.adapted(TorchRMSNorm, given={"eps": 1e-5}).understood)
    assert "assumed eps" not in read


def test_wrong_rms_norm_with_an_epsilon_of_none_is_a_violation():
    assert statuses(CentredRMSNorm, "rms_norm", "formula") == {"formula": "violation"}


@pytest.mark.parametrize("norm", [BareRMSNorm, rms_norm])
def test_rms_norm_with_the_epsilon_of_each_precision_is_judged_in_one(norm):
    read = attentest.adapted(norm, component="rms_norm")
    assert read.limits.precisions == ("float32",)
    with pytest.raises(Uncovered, match=r"epsilon is .* in float32 and .* in float64.*give it one"):
        attentest.adapted(norm, component="rms_norm", strict=True)


def waves(length: int, width: int) -> Tensor:
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width)).double()
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]


class MovedAtCalls(nn.Module):
    """A table that grows, and is moved to its input by every call."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.table = waves(16, d_model)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > len(self.table):
            self.table = waves(2 * x.shape[1], x.shape[2])
        return x + self.table[: x.shape[1]].to(x)


class LeftBehind(MovedAtCalls):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]].to(x.dtype)


def test_table_that_calls_move_is_a_warning_alone():
    found = statuses(MovedAtCalls, "positional_encoding", "follows-moves", "moved-once")
    assert found == {"follows-moves": "pass", "moved-once": "warning"}


def test_table_that_stays_behind_is_a_violation():
    found = statuses(LeftBehind, "positional_encoding", "follows-moves", "moved-once")
    assert found == {"follows-moves": "violation", "moved-once": "warning"}


class TypeByName(MovedAtCalls):
    """A table of frequencies whose positions get the type of the frequencies by its name."""

    def __init__(self, d_model: int) -> None:
        nn.Module.__init__(self)
        self.register_buffer("rates", waves(2, d_model)[1, ::2].arcsin())

    def positions(self, x: Tensor) -> Tensor:
        return torch.arange(x.shape[1], device=x.device)

    def forward(self, x: Tensor) -> Tensor:
        angles = self.positions(x).type(self.rates.type())[:, None] * self.rates
        return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(x.dtype)


class TypeByNameLeftBehind(TypeByName):
    def __init__(self, d_model: int) -> None:
        super().__init__(d_model)
        rates = self.rates
        del self.rates
        self.rates = torch.cat([rates] * 9)

    def forward(self, x: Tensor) -> Tensor:
        angles = self.positions(x).type(self.rates.type())[:, None] * self.rates[: x.shape[-1] // 2]
        return x + torch.stack([angles.sin(), angles.cos()], -1).flatten(1).to(x.dtype)


def test_type_by_name_which_meta_alone_refuses_is_no_failure():
    found = statuses(TypeByName, "positional_encoding", "formula", "follows-moves")
    assert found == {"formula": "pass", "follows-moves": "pass"}


def test_type_by_name_of_a_table_that_stays_behind_is_no_pass():
    found = statuses(TypeByNameLeftBehind, "positional_encoding", "follows-moves")
    assert found != {"follows-moves": "pass"}


class StoredOrNew(nn.Module):
    """A table of tokens that takes a path and a reader of files only where it is stored."""

    def __init__(self, vocab_size: int, d_model: int, stored: bool = False, **options: Any) -> None:
        super().__init__()
        self.help = """
options are read where they are needed
"""
        if stored:
            self.table = nn.Embedding.from_pretrained(options["reader"](options["path"]))
        else:
            self.table = nn.Embedding(vocab_size, d_model)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.table(tokens) * self.table.embedding_dim**0.5


class AlwaysRead(StoredOrNew):
    def __init__(self, vocab_size: int, d_model: int, **options: Any) -> None:
        super().__init__(vocab_size, d_model)
        self.reader = options["reader"]


class OnePlaceLate(StoredOrNew):
    def forward(self, tokens: Tensor) -> Tensor:
        return super().forward(tokens.roll(1, 1))


@pytest.mark.proof
def test_options_that_a_branch_reads_need_no_value():
    assert statuses(StoredOrNew, "embedding", "lookup") == {"lookup": "pass"}
    assert statuses(OnePlaceLate, "embedding", "lookup") == {"lookup": "violation"}
    with pytest.raises(Unclear, match="nothing says what reader is"):
        attentest.adapted(AlwaysRead, component="embedding", strict=True)
    found = attentest.adapted(AlwaysRead, component="embedding")
    assert "assumed reader=False, which nothing says" in "\n".join(found.assumed)


class Embedded(nn.Module):
    """A network whose width has a name of its own, and a default of another size."""

    def __init__(self, dropout: float = 0.1, n_embed: int = 3) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(n_embed, 4 * n_embed), nn.Linear(4 * n_embed, n_embed)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.drop(self.outer(functional.gelu(self.inner(x))))


class Multi_Head_Attention_With_RoPE(nn.Module):  # noqa: N801  # a name that packages use
    def __init__(self, d_input: int, d_output: int, num_heads: int) -> None:
        super().__init__()
        self.heads, self.width = num_heads, d_output // num_heads
        self.qkv = nn.Linear(d_input, 3 * d_output)
        self.output = nn.Linear(d_output, d_output)

    def turned(self, x: Tensor) -> Tensor:
        rates = 10000.0 ** -(torch.arange(0, self.width, 2).to(x) / self.width)
        angles = torch.arange(x.shape[2]).to(x)[:, None] * rates
        first, second = x.unflatten(-1, (-1, 2)).unbind(-1)
        sin, cos = angles.sin(), angles.cos()
        return torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1)).movedim(-3, 0)
        q, k, v = (one.transpose(1, 2) for one in parts)
        scores = self.turned(q) @ self.turned(k).transpose(2, 3) / math.sqrt(self.width)
        return self.output((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Unturned(Multi_Head_Attention_With_RoPE):
    def turned(self, x: Tensor) -> Tensor:
        return super().turned(x) * 1.1


def test_widths_of_published_packages_are_known():
    assert statuses(Embedded, "feed_forward", "formula") == {"formula": "pass"}


@pytest.mark.proof
def test_attention_that_names_its_positions_is_no_rotary_positions():
    read = attentest.adapted(Multi_Head_Attention_With_RoPE)
    assert read.components == ("multi_head_attention",)
    assert read.choices["attention_rotary"] == "query-and-key"
    with pytest.raises(Unclear):
        attentest.adapted(Unturned)
