"""Functions that compute with arrays of JAX, and classes of these."""

from pathlib import Path
from typing import Any

import pytest
from mistaken_code import adapted, asked_or_broken, broken
from proof import share
from user_files import write_files

pytest.importorskip("jax")

import attentest
from attentest.targets.adapt import Unclear
from attentest.targets.libraries import library_of
from attentest.targets.members import members

JAX = """
from functools import partial

import jax
import jax.numpy as jnp


@jax.jit
def attention(q, k, v, mask):
    logits = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    logits = jnp.where(mask, logits, jnp.finfo(logits.dtype).min)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(logits, axis=-1), v)


@partial(jax.jit, static_argnames=("eps",))
def rms_norm(x, weight, eps=1e-5):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * weight


def causal_mask(n):
    return jnp.tril(jnp.ones((n, n), dtype=bool))
"""


@share(4, rest=1)
@pytest.mark.parametrize(
    ("name", "clauses"),
    [
        pytest.param(
            "attention",
            ("attention.formula", "attention.gradient", "attention.half-precision"),
            marks=pytest.mark.proof,
        ),
        ("rms_norm", ("rms_norm.formula", "rms_norm.gradient", "rms_norm.float32")),
        ("causal_mask", ("masks.causal-keeps-past", "masks.causal-keeps-diagonal")),
    ],
)
def test_functions_of_jax_conform(tmp_path: Path, name: str, clauses: tuple[str, ...]) -> None:
    assert broken(adapted(tmp_path, name, JAX), *clauses) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "clause"),
    [
        # The sound function is compiled for as many shapes, and is a unit test.
        pytest.param(
            *("attention", "axis=-1), v", "axis=-2), v", "attention.formula"),
            marks=pytest.mark.proof,
        ),
        ("rms_norm", "x * x, -1", "x * x, 0", "rms_norm.formula"),
    ],
)
def test_mistakes_in_functions_of_jax_are_detected(
    tmp_path: Path, name: str, right: str, wrong: str, clause: str
) -> None:
    assert asked_or_broken(tmp_path, name, JAX, right, wrong, clause)


@pytest.mark.proof
def test_gradients_of_jax_are_compared(tmp_path: Path) -> None:
    stopped = JAX.replace("jnp.mean(x * x,", "jnp.mean(jax.lax.stop_gradient(x) * x,")
    backend = adapted(tmp_path, "rms_norm", stopped)
    assert broken(backend, "rms_norm.formula") == []
    (message,) = broken(backend, "rms_norm.gradient")
    assert message.startswith("The gradient along a random direction")


def test_functions_of_a_file_that_jit_compiles_are_members(tmp_path: Path) -> None:
    write_files(tmp_path, code=JAX)
    found = members(str(tmp_path / "code.py")) or []
    wanted = {"attention": "attention", "rms_norm": "rms_norm", "causal_mask": "causal_mask"}
    assert {one.name: one.component for one in found} == wanted


def test_code_of_jax_may_use_numpy() -> None:
    space: dict[str, Any] = {"__name__": "somewhere"}
    exec("import jax, numpy as np\ndef f(x): return jax.nn.relu(x / np.pi)", space)
    assert library_of(space["f"]) == "jax"


@pytest.mark.proof
def test_a_class_of_jax_with_one_matrix_is_a_question(tmp_path: Path) -> None:
    code = """
    import jax.numpy as jnp


    class FeedForward:
        def __init__(self, d_model):
            self.weight = jnp.ones((d_model, d_model))

        def __call__(self, x):
            return jnp.maximum(x @ self.weight, 0)
    """
    write_files(tmp_path, code=code)
    with pytest.raises(Unclear, match="no feed forward can be made out of weight"):
        attentest.adapted(f"{tmp_path / 'code.py'}:FeedForward")
