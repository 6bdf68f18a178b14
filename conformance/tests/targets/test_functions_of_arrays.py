"""Functions that compute with arrays of NumPy or JAX."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from user_files import write_files

import attentest
from attentest.targets.libraries import is_certain, library_of
from attentest.targets.members import adapter_text, members

NUMPY = """
import numpy as np
from numpy import exp


def softmax(x):
    e = exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(queries, keys, values, mask=None):
    scores = np.einsum("...qd,...kd->...qk", queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores + (1.0 - mask) * -1e9
    return np.einsum("...qk,...kd->...qd", softmax(scores), values)


def layer_norm(x, gamma, beta, eps=1e-6):
    return gamma * (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps) ** 0.5 + beta


def causal_mask(size):
    return np.tril(np.ones((size, size), dtype=bool))


def padding_mask(tokens, pad=0):
    return np.where(tokens == pad, -np.inf, 0.0)[:, np.newaxis, np.newaxis, :]


def positional_encoding(length, width):
    angles = np.arange(length)[:, None] / 10000 ** (2 * (np.arange(width) // 2) / width)
    return np.where(np.arange(width) % 2 == 0, np.sin(angles), np.cos(angles))


def cross_entropy(logits, targets, ignore_index=0):
    shifted = logits - logits.max(axis=-1, keepdims=True)
    logp = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    picked = np.take_along_axis(logp, targets[..., None], axis=-1)[..., 0]
    keep = targets != ignore_index
    return -(picked * keep).sum() / keep.sum()


def rotary_tables(seq_len, head_dim, base=10000.0):
    frequencies = 1.0 / base ** (np.arange(0, head_dim, 2) / head_dim)
    angles = np.outer(np.arange(seq_len), frequencies)
    return np.cos(angles), np.sin(angles)


def apply_rotary(x, cos, sin):
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
"""
TORCH = """
import numpy as np


def attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / np.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return scores.softmax(-1) @ v
"""
SOUND = [
    ("attention", ("attention.formula", "attention.float32")),
    ("layer_norm", ("layer_norm.formula", "layer_norm.variance", "layer_norm.gradient")),
    ("causal_mask", ("masks.causal-keeps-past", "masks.causal-keeps-diagonal")),
    ("padding_mask", ("masks.padding-keeps-exactly-real-tokens",)),
    ("positional_encoding", ("positional_encoding.formula",)),
    ("cross_entropy", ("loss.formula", "loss.float32")),
    ("apply_rotary", ("rotary.formula", "rotary.shapes")),
]


@pytest.mark.parametrize(("name", "clauses"), SOUND)
def test_functions_of_arrays_conform(tmp_path: Path, name: str, clauses: tuple[str, ...]) -> None:
    assert broken(adapted(tmp_path, name, NUMPY), *clauses) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "clauses"),
    [
        ("attention", " / np.sqrt(queries.shape[-1])", "", ["attention.formula"]),
        ("layer_norm", "x.var(-1, keep", "x.std(-1, keep", ["layer_norm.formula"]),
        ("causal_mask", "bool))", "bool), 1)", ["masks.causal-blocks-future"]),
        ("cross_entropy", "/ keep.sum()", "/ keep.size", ["loss.formula"]),
        ("apply_rotary", "a * sin + b", "a * sin - b", ["rotary.formula"]),
    ],
)
def test_mistakes_in_functions_of_arrays_are_detected(
    tmp_path: Path, name: str, right: str, wrong: str, clauses: list[str]
) -> None:
    assert asked_or_broken(tmp_path, name, NUMPY, right, wrong, *clauses)


def test_variance_of_an_array_is_that_of_numpy(tmp_path: Path) -> None:
    """A tensor's `var` divides by n - 1, which was taken for a choice of the code."""
    backend = adapted(tmp_path, "layer_norm", NUMPY)
    assert dict(backend.choices).get("norm_variance", "biased") == "biased"


def test_double_precision_of_a_scalar_is_a_violation_of_a_strict_reading(tmp_path: Path) -> None:
    write_files(tmp_path, code=NUMPY)
    target = f"{tmp_path / 'code.py'}:attention"
    strict: Any = attentest.adapted(target, strict=True)
    assert broken(strict, "attention.float32") == ["The output is float64; the inputs are float32."]


@pytest.mark.proof
def test_reproduction_and_adapter_call_the_function_with_arrays(tmp_path: Path) -> None:
    wrong = NUMPY.replace(" / np.sqrt(queries.shape[-1])", "")
    write_files(tmp_path, code=wrong)
    report = attentest.check(f"{tmp_path / 'code.py'}:attention", clauses=["attention.formula"])
    (failure,) = report.failures
    assert failure.counterexample is not None
    code = failure.counterexample.code
    script = tmp_path / "shown.py"
    script.write_text(code, encoding="utf-8")
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "on_arrays(attention, 'numpy', rounded=True)(" in code
    assert "tensor(" in ran.stdout
    written = adapter_text(f"{tmp_path / 'code.py'}:attention", {})
    write_files(tmp_path, written=written)
    backend: Any = attentest.adapted(str(tmp_path / "written.py"))
    assert broken(backend, "attention.formula") == [failure.message]


@pytest.mark.parametrize(
    ("imports", "body", "library"),
    [
        ("import numpy as np", "return np.exp(x)", "numpy"),
        ("import numpy as np", "return x.mean()", "numpy"),
        ("from numpy import exp", "return (lambda one: exp(one))(x)", "numpy"),
        ("import math", "import numpy as np; return np.exp(x)", "numpy"),
        ("import numpy as np", "return x.permute(0, 2, 1) / np.sqrt(2)", ""),
        ("import numpy as np; import torch", "return x.softmax(-1)", ""),
        ("import numpy as np; import torch", "return torch.exp(x) * np.pi", ""),
        ("import math", "return x / math.pi", ""),
        ("import numpy as np\ndef g(x): return np.exp(x)", "return g(x)", "numpy"),
        ("import numpy as np\ndef g(x): return x.unsqueeze(0)", "return g(x) + np.pi", ""),
    ],
)
def test_library_of_a_function(imports: str, body: str, library: str) -> None:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec(f"{imports}\ndef f(x): {body}", space)
    assert library_of(space["f"]) == library


def test_half_precision_of_numpy_is_not_judged(tmp_path: Path) -> None:
    """A float16 of 0 times -1e9, which is -inf there, is no number."""
    backend = adapted(tmp_path, "attention", NUMPY.replace("(1.0 - mask)", "(1 - mask)"))
    assert backend.limits.precisions == ("float64", "float32")


def test_torch_in_the_file_leaves_the_library_open_unless_an_annotation_names_it() -> None:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec("import numpy as np, torch\ndef f(x: np.ndarray): return np.exp(x)", space)
    exec("def g(x): return np.exp(x)\ndef h(x: 'jnp.ndarray'): return x", space)
    assert [library_of(space[one]) for one in "fgh"] == ["numpy", "numpy", "jax"]
    assert [is_certain(space[one]) for one in "fgh"] == [True, False, True]


@pytest.mark.parametrize("imports", ["import numpy as np", "import numpy as np\nimport torch"])
def test_function_that_uses_one_scalar_of_numpy_is_called_with_tensors(
    tmp_path: Path, imports: str
) -> None:
    backend = adapted(tmp_path, "attention", TORCH.replace("import numpy as np", imports))
    assert broken(backend, "attention.formula") == []
    assert broken(backend, "attention.gradient") == []


def test_functions_of_arrays_in_a_file_of_both_are_called_with_arrays(tmp_path: Path) -> None:
    """A tensor's `var` divides by n - 1, and NumPy takes no root of a tensor with a gradient."""
    root = NUMPY.replace(
        "(x.var(-1, keepdims=True) + eps) ** 0.5", "np.sqrt(x.var(-1) + eps)[..., None]"
    )
    backend = adapted(tmp_path, "layer_norm", "import torch\n" + root)
    assert broken(backend, "layer_norm.formula", "layer_norm.gradient") == []
    assert dict(backend.choices).get("norm_variance", "biased") == "biased"


def test_an_object_that_has_every_attribute_is_no_definition(tmp_path: Path) -> None:
    write_files(tmp_path, code=f"from unittest.mock import call\n{NUMPY}")
    found = members(str(tmp_path / "code.py")) or []
    assert "call" not in {one.name for one in found}
    assert "attention" in {one.component for one in found}
