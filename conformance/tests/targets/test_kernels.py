"""Kernels that torch does not see, and code that needs a GPU."""

from pathlib import Path

import pytest
import torch

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.kernels import KernelWatch

KERNEL = """
import numpy as np
import torch
from torch import nn


class Kernel(torch.autograd.Function):
    \"\"\"silu(a) b by a kernel that torch does not see; it computes in float32.\"\"\"

    @staticmethod
    def forward(ctx, a, b):
        a, b = a.contiguous(), b.contiguous()
        out = torch.empty_like(a)
        low, up = (one.numpy().astype(np.float32) for one in (a, b))
        out.numpy()[...] = low * (1 + np.tanh(low / 2)) / 2 * up
        ctx.save_for_backward(a, b)
        return out

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        gate = a.sigmoid()
        return grad * b * gate * (1 + a * (1 - gate)), grad * a * gate


class FusedMLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(Kernel.apply(self.gate_proj(x), self.up_proj(x)))
"""


def test_kernel_in_single_precision_that_torch_does_not_see(tmp_path: Path) -> None:
    sound, wrong, small = (tmp_path / f"{name}.py" for name in ("sound", "wrong", "small"))
    sound.write_text(KERNEL)
    wrong.write_text(KERNEL.replace("grad * a * gate", "grad * a"))
    # Off by a hundred millionth, in double precision: this is no rounding.
    small.write_text(KERNEL.replace(".astype(np.float32)", "").replace("* up", "* up * (1 + 3e-8)"))
    clauses = ["feed_forward.formula", "feed_forward.gradient"]
    read = attentest.check(f"{sound}:FusedMLP", clauses=clauses)
    assert "assumed that it computes in float32" in "\n".join(read.inferred)
    assert read.conforms, str(read)
    assert not attentest.check(f"{wrong}:FusedMLP", clauses=clauses).conforms
    assert not attentest.check(f"{small}:FusedMLP", clauses=clauses).conforms


@pytest.mark.parametrize(
    "raised", ["Torch not compiled with CUDA enabled", "0 active drivers ([]). There should be one"]
)
def test_code_that_needs_a_gpu_is_said_to(raised: str, tmp_path: Path) -> None:
    file = tmp_path / "gpu.py"
    file.write_text(f"""
import torch

def attention(q, k, v):
    raise RuntimeError({raised!r})

class GPT(torch.nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer):
        super().__init__()
        self.table = torch.nn.Embedding(vocab_size, n_embd)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(n_embd, n_embd) for _ in range(n_layer))

    def forward(self, idx):
        raise RuntimeError({raised!r})
""")
    for name in ("attention", "GPT"):
        with pytest.raises(Unclear) as question:
            attentest.adapted(f"{file}:{name}")
        message = str(question.value)
        assert message.startswith(f"{name} needs a GPU, and code is read on the CPU")
        assert "TRITON_INTERPRET=1" in message
        assert raised in message


ELSEWHERE = """
import types

import torch


class MultiHeadAttention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(settings.width, settings.width)

    def forward(self, query, key, value, mask):
        return self.query(query)


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(vocabulary, settings.width)

    def forward(self, src, tgt):
        return self.words(tgt)


if __name__ == "__main__":
    settings, vocabulary = types.SimpleNamespace(width=8), 8
"""


@pytest.mark.parametrize(
    ("name", "missing"), [("MultiHeadAttention", "settings"), ("Transformer", "vocabulary")]
)
def test_a_name_that_importing_does_not_define_is_the_question(
    name: str, missing: str, tmp_path: Path
) -> None:
    file = tmp_path / "elsewhere.py"
    file.write_text(ELSEWHERE)
    with pytest.raises(Unclear, match=f"^{name} reads {missing}, which is not defined where its"):
        attentest.adapted(f"{file}:{name}")


def test_a_model_that_moves_itself_to_a_gpu_is_asked_for_the_device(tmp_path: Path) -> None:
    file = tmp_path / "moved.py"
    text = ELSEWHERE.replace("if __name__", "if True or __name__")
    failure = "raise AssertionError('Torch not compiled with CUDA enabled')"
    file.write_text(
        text.replace("        self.words =", f"        {failure}\n        self.words =")
    )
    with pytest.raises(Unclear, match=r"Transformer needs a GPU.* by name, write \.to"):
        attentest.adapted(f"{file}:Transformer")


def test_a_library_that_is_missing_is_no_need_of_a_gpu(tmp_path: Path) -> None:
    file = tmp_path / "missing.py"
    file.write_text("def attention(q, k, v):\n    import triton_that_is_not_there.triton\n")
    with pytest.raises(Exception, match="triton_that_is_not_there") as failure:
        attentest.adapted(f"{file}:attention")
    assert "needs a GPU" not in str(failure.value)


@pytest.mark.proof
def test_memory_without_numbers_is_left_alone() -> None:
    with KernelWatch():
        made = torch.empty(2, 3, device="meta", dtype=torch.float64)
        assert (made + torch.empty(0, dtype=torch.float64, device="meta").sum()).shape == (2, 3)
        assert (torch.zeros(0, dtype=torch.float64) + 1).shape == (0,)


ABSENT = """
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.hidden_dim = 2 * hidden_dim // 2
        self.w1 = nn.Linear(dim, self.hidden_dim)
        self.w2 = nn.Linear(self.hiden_dim, dim)

    def forward(self, x):
        return self.w2(self.w1(x).relu())
"""


def test_an_attribute_that_no_code_sets_is_the_question(tmp_path: Path) -> None:
    file = tmp_path / "absent.py"
    file.write_text(ABSENT)
    line = ABSENT.splitlines().index("        self.w2 = nn.Linear(self.hiden_dim, dim)") + 1
    said = f"^FeedForward cannot run: line {line} reads self.hiden_dim, .*; if hidden_dim is meant"
    with pytest.raises(Unclear, match=said):
        attentest.adapted(f"{file}:FeedForward")


def test_a_constructor_that_does_not_call_its_base_class_is_the_question(tmp_path: Path) -> None:
    file = tmp_path / "uncalled.py"
    file.write_text(ABSENT.replace("super().__init__()", "super().__init__"))
    with pytest.raises(
        Unclear, match=r"^FeedForward cannot run: a constructor sets parts .* super\(\)"
    ):
        attentest.adapted(f"{file}:FeedForward")


def test_a_misspelt_name_that_no_code_defines_is_the_question(tmp_path: Path) -> None:
    file = tmp_path / "misspelt.py"
    text = ABSENT.replace("self.hiden_dim", "self.hidden_dim")
    file.write_text(text.replace("self.w1(x).relu()", "nm.ReLU()(self.w1(x))"))
    with pytest.raises(Unclear, match="reads nm, which no code of its file defines"):
        attentest.adapted(f"{file}:FeedForward")


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("from a_library_that_is_missing import nm", "ModuleNotFoundError"),
        ("nm = open('settings_that_are_nowhere')", "FileNotFoundError"),
    ],
)
def test_a_statement_that_cannot_be_run_is_the_question(
    statement: str, why: str, tmp_path: Path
) -> None:
    file = tmp_path / "left.py"
    text = ABSENT.replace("self.hiden_dim", "self.hidden_dim")
    file.write_text(statement + text.replace("self.w1(x).relu()", "nm.ReLU()(self.w1(x))"))
    said = rf"^FeedForward cannot run here: line 1, which defines nm, is left out \({why}: .*\)"
    with pytest.raises(Unclear, match=said):
        attentest.adapted(f"{file}:FeedForward")


def test_an_import_of_every_name_that_cannot_be_run_is_the_question(tmp_path: Path) -> None:
    file = tmp_path / "starred.py"
    text = ABSENT.replace("self.hiden_dim", "self.hidden_dim")
    text = text.replace("self.w1(x).relu()", "nm.ReLU()(self.w1(x))")
    file.write_text("from a_library_that_is_missing import *" + text)
    said = r"^FeedForward cannot run here: line 1, which imports every name .* defines nm\."
    with pytest.raises(Unclear, match=said):
        attentest.adapted(f"{file}:FeedForward")


def test_an_attribute_that_other_code_sets_is_asked_about_as_before(tmp_path: Path) -> None:
    file = tmp_path / "later.py"
    file.write_text(ABSENT + "\n\ndef widen(one):\n    one.hiden_dim = one.hidden_dim\n")
    with pytest.raises(Unclear, match=r"^FeedForward could not be built"):
        attentest.adapted(f"{file}:FeedForward")
